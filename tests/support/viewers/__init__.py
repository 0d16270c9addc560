"""The viewers themselves, fetched at test time and run offline as judges of what we write."""
