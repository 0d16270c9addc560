/* The event loop of the simulated device: computes the start and end of every command.
 *
 * Lanes run their commands in order; a command starts when its lane is free and its dependencies are done. A transfer
 * occupies its lane only while it is issued, then waits in the FIFO queue of its core and route; queues of one device
 * and route share the bandwidth of a channel equally. Channels that serve one memory, its reads and its writes, make a
 * pool: together they are no faster than the memory. A transfer is done the latency of its channel after its last byte
 * arrived; its queue is free when that byte arrives.
 *
 * Each lane and each channel has at most one next event of a kind: the lane's command ends, the channel's transfer with
 * the fewest bytes left arrives, or the first of those that arrived is done. So one heap of at most lanes + 2 x channels
 * events suffices; when another transfer joins a pool, the events of its channels move to their new times in the heap.
 *
 * All transfers in flight on a channel have the same rate. A channel therefore counts the bytes that each of them has
 * moved since the channel was last idle, its "level": a transfer that starts at level v is done at level v + bytes,
 * however the rate changes in between, and only the smallest such level needs a time.
 *
 * Example, channel of 10 bytes per cycle: transfer A (100 bytes) starts at cycle 0, level 0, and is due at level 100.
 * B (40 bytes) starts at cycle 4, level 40, and is due at level 80. Each now gets 5 bytes per cycle, so the level
 * reaches 80 at cycle 12 (B is done) and, with A alone again, 100 at cycle 14.
 *
 * event_loop.py is the same loop in Python, operation by operation, with bit-identical results. No state outlives a
 * call.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

#define NONE (-1)
#define EVENTS_BETWEEN_SIGNAL_CHECKS (1u << 20)

/* ---- Indexed binary heap: items can be moved or removed. Earliest first; of equal times, the smaller item. ---- */

typedef struct {
    double *due;    /* item → time; may be shared by heaps that never hold the same item */
    int32_t *place; /* item → position in slots, or NONE */
    int32_t *slots;
    int32_t size;
} Heap;

static int before(const Heap *heap, int32_t a, int32_t b)
{
    return heap->due[a] < heap->due[b] || (heap->due[a] == heap->due[b] && a < b);
}

/* Put an item into a slot. */
static void settle(Heap *heap, int32_t position, int32_t item)
{
    heap->slots[position] = item;
    heap->place[item] = position;
}

static void sift_up(Heap *heap, int32_t position)
{
    int32_t item = heap->slots[position];
    while (position > 0) {
        int32_t parent = (position - 1) / 2;
        if (!before(heap, item, heap->slots[parent]))
            break;
        settle(heap, position, heap->slots[parent]);
        position = parent;
    }
    settle(heap, position, item);
}

static void sift_down(Heap *heap, int32_t position)
{
    int32_t item = heap->slots[position];
    for (;;) {
        int32_t child = position < heap->size / 2 ? 2 * position + 1 : heap->size;
        if (child >= heap->size)
            break;
        if (child + 1 < heap->size && before(heap, heap->slots[child + 1], heap->slots[child]))
            child++;
        if (!before(heap, heap->slots[child], item))
            break;
        settle(heap, position, heap->slots[child]);
        position = child;
    }
    settle(heap, position, item);
}

/* Insert an item, or move it to a new time: it then sifts in one direction only. */
static void heap_put(Heap *heap, int32_t item, double due)
{
    heap->due[item] = due;
    if (heap->place[item] == NONE)
        settle(heap, heap->size++, item);
    sift_up(heap, heap->place[item]);
    sift_down(heap, heap->place[item]);
}

static void heap_drop(Heap *heap, int32_t item)
{
    int32_t position = heap->place[item];
    heap->place[item] = NONE;
    if (position == --heap->size)
        return;
    int32_t moved = heap->slots[heap->size];
    settle(heap, position, moved);
    sift_up(heap, position);
    sift_down(heap, heap->place[moved]);
}

/* ---- The machine ---- */

typedef struct {
    Heap flying;    /* queues with a transfer in flight, by the level at which it is done */
    double level;   /* bytes that each transfer in flight has moved since the channel was last idle */
    double updated; /* time for which the level holds */
    double rate;    /* bytes per cycle of each transfer in flight */
    double shared_rate, queue_rate, latency;
    int32_t pool;
    int32_t landing_first, landing_last; /* FIFO of commands that arrived and are not done; NONE: empty */
    int settled; /* its rate is known, while a pool is shared out */
} Channel;

typedef struct {
    /* The program, read only. A lane runs commands lane_first[l] .. lane_first[l + 1] - 1. */
    size_t commands, dependencies, lanes, queues, channels, pools;
    const double *cycles, *bytes;
    const int32_t *queue_of; /* command → queue; NONE: computes, or moves nothing */
    const uint32_t *dependency_first, *dependency_source;
    const int64_t *lane_first;
    const int32_t *channel_of; /* queue → channel */
    const double *shared_rate, *queue_rate, *latency;
    const int32_t *pool_first; /* a pool has channels pool_first[p] .. pool_first[p + 1] - 1 */
    const double *pool_rate;

    /* The result, one of each per command. */
    double *lane_ready, *start, *issue_end, *transfer_start, *done;
    int64_t *blocker;

    /* The state of the simulation. */
    int64_t *head;    /* lane → command that it runs or waits to run */
    int32_t *lane_of; /* command → lane */
    uint32_t *missing; /* command → dependencies not yet done */
    uint32_t *user_first, *user; /* commands that depend on each command */
    int32_t *queue_first, *queue_last; /* FIFO of commands */
    int32_t *queue_next; /* command → next in the FIFO of its queue, or of its channel's landing; NONE ends it */
    Heap events; /* items: lanes, then channels with an arrival, then channels with a landing */
    Channel *channel;
    double *flying_due; /* storage of the heaps of all channels */
    int32_t *flying_place, *flying_slots;
    size_t finished;
} Machine;

/* Start the lane's next command if the lane is free and all dependencies are done. */
static void try_start(Machine *m, int32_t lane, double now)
{
    int64_t command = m->head[lane];
    if (command == m->lane_first[lane + 1] || m->missing[command] || m->events.place[lane] != NONE)
        return;
    m->start[command] = now;
    m->blocker[command] = NONE;
    if (now > m->lane_ready[command]) {
        double latest = -1.0; /* the lane waited; of several dependencies done last, the first listed */
        for (uint32_t i = m->dependency_first[command]; i < m->dependency_first[command + 1]; i++) {
            uint32_t source = m->dependency_source[i];
            if (m->done[source] > latest) {
                latest = m->done[source];
                m->blocker[command] = source;
            }
        }
    }
    heap_put(&m->events, lane, now + m->cycles[command]);
}

/* Mark a command as done, and start the commands that waited for it alone. */
static void complete(Machine *m, int64_t command, double now)
{
    m->done[command] = now;
    m->finished++;
    for (uint32_t i = m->user_first[command]; i < m->user_first[command + 1]; i++) {
        uint32_t user = m->user[i];
        if (--m->missing[user] == 0 && m->head[m->lane_of[user]] == user)
            try_start(m, m->lane_of[user], now);
    }
}

/* Bytes per cycle that each transfer in flight gets at most: an equal share of the channel, or the rate of one queue. */
static double cap_of(const Channel *channel)
{
    double share = channel->shared_rate / channel->flying.size;
    return share < channel->queue_rate ? share : channel->queue_rate;
}

/* The channel of a pool with the lowest cap of those whose rate is not known; NULL: all are known or idle. */
static Channel *next_to_settle(Machine *m, int32_t pool)
{
    Channel *lowest = NULL;
    for (int32_t index = m->pool_first[pool]; index < m->pool_first[pool + 1]; index++) {
        Channel *channel = &m->channel[index];
        if (channel->flying.size && !channel->settled && (!lowest || cap_of(channel) < cap_of(lowest)))
            lowest = channel;
    }
    return lowest;
}

/* Share a pool out: equally among transfers, except that what one cannot use is left to the others. Whoever is capped
 * lowest takes its part first. Example, 10 bytes per cycle for a channel capped at 2 and another capped at 20, one
 * transfer each: the first gets min(2, 10 / 2) = 2, the second min(20, 8 / 1) = 8. */
static void share_out(Machine *m, int32_t pool)
{
    double left = m->pool_rate[pool];
    int32_t sharing = 0;
    for (int32_t index = m->pool_first[pool]; index < m->pool_first[pool + 1]; index++) {
        m->channel[index].settled = 0;
        sharing += m->channel[index].flying.size;
    }
    for (Channel *channel; (channel = next_to_settle(m, pool));) {
        double cap = cap_of(channel), fair = left / sharing;
        channel->rate = fair < cap ? fair : cap;
        left -= channel->rate * channel->flying.size;
        sharing -= channel->flying.size;
        channel->settled = 1;
    }
}

/* Advance the levels of a pool to `now`: rates are about to change. */
static void advance(Machine *m, int32_t pool, double now)
{
    for (int32_t index = m->pool_first[pool]; index < m->pool_first[pool + 1]; index++) {
        Channel *channel = &m->channel[index];
        if (channel->flying.size) {
            double level = channel->level + (now - channel->updated) * channel->rate;
            double next = channel->flying.due[channel->flying.slots[0]];
            channel->level = level < next ? level : next; /* rounding must not pass the next arrival */
        }
        channel->updated = now;
    }
}

/* Set the channel's next arrival from its level and rate. */
static void schedule(Machine *m, int32_t index)
{
    Channel *channel = &m->channel[index];
    int32_t item = (int32_t)m->lanes + index;
    if (channel->flying.size == 0) {
        channel->level = 0.0; /* reset while idle, so that the level stays small and exact */
        if (m->events.place[item] != NONE)
            heap_drop(&m->events, item);
        return;
    }
    double left = channel->flying.due[channel->flying.slots[0]] - channel->level;
    heap_put(&m->events, item, channel->updated + left / channel->rate);
}

/* Share a pool out anew, and set the next arrival of each of its channels. */
static void reschedule(Machine *m, int32_t pool)
{
    share_out(m, pool);
    for (int32_t index = m->pool_first[pool]; index < m->pool_first[pool + 1]; index++)
        schedule(m, index);
}

/* Put the queue's first transfer in flight. */
static void take_off(Machine *m, int32_t queue, double now)
{
    Channel *channel = &m->channel[m->channel_of[queue]];
    int32_t command = m->queue_first[queue];
    m->transfer_start[command] = now;
    heap_put(&channel->flying, queue, channel->level + m->bytes[command]);
}

/* Append a transfer to its queue; start it if the queue was idle. */
static void enqueue(Machine *m, int64_t command, double now)
{
    int32_t queue = m->queue_of[command];
    m->queue_next[command] = NONE;
    if (m->queue_first[queue] != NONE) {
        m->queue_next[m->queue_last[queue]] = (int32_t)command;
        m->queue_last[queue] = (int32_t)command;
        return;
    }
    m->queue_first[queue] = m->queue_last[queue] = (int32_t)command;
    int32_t pool = m->channel[m->channel_of[queue]].pool;
    advance(m, pool, now);
    take_off(m, queue, now);
    reschedule(m, pool);
}

/* A lane's command ends: a transfer goes to its queue, any other command is done. */
static void lane_event(Machine *m, int32_t lane, double now)
{
    int64_t command = m->head[lane]++;
    heap_drop(&m->events, lane);
    m->issue_end[command] = now;
    if (m->head[lane] < m->lane_first[lane + 1])
        m->lane_ready[m->head[lane]] = now;
    if (m->queue_of[command] == NONE) {
        m->transfer_start[command] = now;
        complete(m, command, now);
    } else {
        enqueue(m, command, now);
    }
    try_start(m, lane, now);
}

/* A transfer has arrived to its last byte: it is done now, or after the latency of its channel. */
static void land(Machine *m, int32_t index, int32_t command, double now)
{
    Channel *channel = &m->channel[index];
    if (!(channel->latency > 0)) {
        complete(m, command, now);
        return;
    }
    m->done[command] = now + channel->latency;
    m->queue_next[command] = NONE;
    if (channel->landing_first == NONE) {
        channel->landing_first = command;
        heap_put(&m->events, (int32_t)(m->lanes + m->channels) + index, m->done[command]);
    } else {
        m->queue_next[channel->landing_last] = command;
    }
    channel->landing_last = command;
}

/* The first transfer that arrived on a channel is done; those behind it arrived later and are done later. */
static void landing_event(Machine *m, int32_t index, double now)
{
    Channel *channel = &m->channel[index];
    int32_t command = channel->landing_first, item = (int32_t)(m->lanes + m->channels) + index;
    channel->landing_first = m->queue_next[command];
    if (channel->landing_first == NONE)
        heap_drop(&m->events, item);
    else
        heap_put(&m->events, item, m->done[channel->landing_first]);
    complete(m, command, now);
}

/* The channel's first transfer arrives: start the next of its queue, or leave its share to the others. */
static void channel_event(Machine *m, int32_t index, double now)
{
    Channel *channel = &m->channel[index];
    int32_t queue = channel->flying.slots[0];
    int32_t command = m->queue_first[queue];
    channel->level = channel->flying.due[queue]; /* exact, independent of rounding in the time */
    channel->updated = now;
    heap_drop(&channel->flying, queue);
    m->queue_first[queue] = m->queue_next[command];
    if (m->queue_first[queue] != NONE) {
        take_off(m, queue, now);
        schedule(m, index);
    } else {
        advance(m, channel->pool, now);
        reschedule(m, channel->pool);
    }
    land(m, index, command, now);
}

/* Run until no events are left. Return 0, or -1 with a Python exception if the user interrupts. */
static int run_events(Machine *m)
{
    unsigned events = 0;
    for (size_t lane = 0; lane < m->lanes; lane++) {
        if (m->head[lane] < m->lane_first[lane + 1])
            m->lane_ready[m->head[lane]] = 0.0;
        try_start(m, (int32_t)lane, 0.0);
    }
    while (m->events.size) {
        int32_t item = m->events.slots[0];
        double now = m->events.due[item];
        if ((size_t)item < m->lanes)
            lane_event(m, item, now);
        else if ((size_t)item < m->lanes + m->channels)
            channel_event(m, item - (int32_t)m->lanes, now);
        else
            landing_event(m, item - (int32_t)(m->lanes + m->channels), now);
        if (++events % EVENTS_BETWEEN_SIGNAL_CHECKS == 0 && PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

/* ---- Set-up. simulate.py has checked the program with better error texts; these checks keep memory safe. ---- */

static const char *problem_with(const Machine *m)
{
    if (m->commands >= INT32_MAX || m->dependencies > UINT32_MAX || m->queues >= INT32_MAX)
        return "too many commands, dependencies or queues";
    if (m->lanes >= INT32_MAX || m->channels >= INT32_MAX || m->lanes + 2 * m->channels >= INT32_MAX)
        return "too many lanes or channels";
    if (m->lane_first[0] != 0 || m->lane_first[m->lanes] != (int64_t)m->commands)
        return "lanes do not cover the commands";
    for (size_t lane = 0; lane < m->lanes; lane++)
        if (m->lane_first[lane] > m->lane_first[lane + 1])
            return "lanes are not in order";
    if (m->dependency_first[0] != 0 || m->dependency_first[m->commands] != m->dependencies)
        return "offsets do not cover the dependencies";
    for (size_t command = 0; command < m->commands; command++) {
        if (m->dependency_first[command] > m->dependency_first[command + 1])
            return "offsets of dependencies are not in order";
        if (m->queue_of[command] < NONE || m->queue_of[command] >= (int64_t)m->queues)
            return "a queue does not exist";
    }
    for (size_t i = 0; i < m->dependencies; i++)
        if (m->dependency_source[i] >= m->commands)
            return "a dependency does not exist";
    for (size_t queue = 0; queue < m->queues; queue++)
        if (m->channel_of[queue] < 0 || (size_t)m->channel_of[queue] >= m->channels)
            return "a channel does not exist";
    if (m->pool_first[0] != 0 || m->pool_first[m->pools] != (int64_t)m->channels)
        return "pools do not cover the channels";
    for (size_t pool = 0; pool < m->pools; pool++)
        if (m->pool_first[pool] > m->pool_first[pool + 1])
            return "pools are not in order";
    return NULL;
}

static void release(Machine *m)
{
    void *parts[] = {m->head, m->lane_of, m->missing, m->user_first, m->user, m->queue_first, m->queue_last,
                     m->queue_next, m->events.due, m->events.place, m->events.slots, m->channel, m->flying_due,
                     m->flying_place, m->flying_slots};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        PyMem_Free(parts[i]);
}

/* Return 0, or -1 if memory ran out; release() is safe after both. */
static int allocate(Machine *m)
{
    size_t items = m->lanes + 2 * m->channels;
    m->head = PyMem_Calloc(m->lanes, sizeof *m->head);
    m->lane_of = PyMem_Calloc(m->commands, sizeof *m->lane_of);
    m->missing = PyMem_Calloc(m->commands, sizeof *m->missing);
    m->user_first = PyMem_Calloc(m->commands + 1, sizeof *m->user_first);
    m->user = PyMem_Calloc(m->dependencies, sizeof *m->user);
    m->queue_first = PyMem_Calloc(m->queues, sizeof *m->queue_first);
    m->queue_last = PyMem_Calloc(m->queues, sizeof *m->queue_last);
    m->queue_next = PyMem_Calloc(m->commands, sizeof *m->queue_next);
    m->events.due = PyMem_Calloc(items, sizeof *m->events.due);
    m->events.place = PyMem_Calloc(items, sizeof *m->events.place);
    m->events.slots = PyMem_Calloc(items, sizeof *m->events.slots);
    m->channel = PyMem_Calloc(m->channels, sizeof *m->channel);
    m->flying_due = PyMem_Calloc(m->queues, sizeof *m->flying_due);
    m->flying_place = PyMem_Calloc(m->queues, sizeof *m->flying_place);
    m->flying_slots = PyMem_Calloc(m->queues, sizeof *m->flying_slots);
    return m->head && m->lane_of && m->missing && m->user_first && m->user && m->queue_first && m->queue_last &&
                   m->queue_next && m->events.due && m->events.place && m->events.slots && m->channel &&
                   m->flying_due && m->flying_place && m->flying_slots
               ? 0
               : -1;
}

/* Invert the dependencies by counting sort; users of one command keep the order of the table. */
static void turn_dependencies(Machine *m)
{
    for (size_t i = 0; i < m->dependencies; i++)
        m->user_first[m->dependency_source[i] + 1]++;
    for (size_t command = 0; command < m->commands; command++)
        m->user_first[command + 1] += m->user_first[command];
    for (size_t command = 0; command < m->commands; command++) {
        m->missing[command] = m->dependency_first[command + 1] - m->dependency_first[command];
        for (uint32_t i = m->dependency_first[command]; i < m->dependency_first[command + 1]; i++)
            m->user[m->user_first[m->dependency_source[i]]++] = (uint32_t)command;
    }
    /* Filling advanced every offset to the start of the next command: shift them back. */
    memmove(m->user_first + 1, m->user_first, m->commands * sizeof *m->user_first);
    m->user_first[0] = 0;
}

static void set_up(Machine *m)
{
    turn_dependencies(m);
    for (size_t lane = 0; lane < m->lanes; lane++) {
        m->head[lane] = m->lane_first[lane];
        for (int64_t command = m->lane_first[lane]; command < m->lane_first[lane + 1]; command++)
            m->lane_of[command] = (int32_t)lane;
    }
    for (size_t item = 0; item < m->lanes + 2 * m->channels; item++)
        m->events.place[item] = NONE;
    for (size_t queue = 0; queue < m->queues; queue++) {
        m->queue_first[queue] = m->flying_place[queue] = NONE;
        m->channel[m->channel_of[queue]].flying.size++; /* temporarily the number of queues of the channel */
    }
    int32_t *slots = m->flying_slots;
    for (size_t index = 0; index < m->channels; index++) {
        Channel *channel = &m->channel[index];
        int32_t room = channel->flying.size; /* each queue has at most one transfer in flight */
        channel->flying = (Heap){m->flying_due, m->flying_place, slots, 0};
        channel->shared_rate = m->shared_rate[index];
        channel->queue_rate = m->queue_rate[index];
        channel->latency = m->latency[index];
        channel->landing_first = NONE;
        slots += room;
    }
    for (size_t pool = 0; pool < m->pools; pool++)
        for (int32_t index = m->pool_first[pool]; index < m->pool_first[pool + 1]; index++)
            m->channel[index].pool = (int32_t)pool;
}

/* ---- Python ---- */

enum {
    CYCLES, BYTES, QUEUE_OF, DEPENDENCY_FIRST, DEPENDENCY_SOURCE, LANE_FIRST, CHANNEL_OF, SHARED_RATE, QUEUE_RATE,
    LATENCY, POOL_FIRST, POOL_RATE, LANE_READY, START, ISSUE_END, TRANSFER_START, DONE, BLOCKER, BUFFERS
};

static size_t records(const Py_buffer *view, size_t record_bytes)
{
    return (size_t)view->len / record_bytes;
}

static const char *problem_with_sizes(const Machine *m, const Py_buffer *views)
{
    size_t n = m->commands;
    size_t wanted[BUFFERS] = {
        [CYCLES] = n * 8, [BYTES] = n * 8, [QUEUE_OF] = n * 4, [DEPENDENCY_FIRST] = (n + 1) * 4,
        [DEPENDENCY_SOURCE] = m->dependencies * 4, [LANE_FIRST] = (m->lanes + 1) * 8, [CHANNEL_OF] = m->queues * 4,
        [SHARED_RATE] = m->channels * 8, [QUEUE_RATE] = m->channels * 8, [LATENCY] = m->channels * 8,
        [POOL_FIRST] = (m->pools + 1) * 4, [POOL_RATE] = m->pools * 8, [LANE_READY] = n * 8, [START] = n * 8,
        [ISSUE_END] = n * 8, [TRANSFER_START] = n * 8, [DONE] = n * 8, [BLOCKER] = n * 8,
    };
    for (int i = 0; i < BUFFERS; i++)
        if ((size_t)views[i].len != wanted[i])
            return "columns differ in length";
    return NULL;
}

static const char *fill(Machine *m, const Py_buffer *views)
{
    if (views[LANE_FIRST].len < 8)
        return "lane offsets are missing";
    m->commands = records(&views[CYCLES], 8);
    m->dependencies = records(&views[DEPENDENCY_SOURCE], 4);
    m->lanes = records(&views[LANE_FIRST], 8) - 1;
    m->queues = records(&views[CHANNEL_OF], 4);
    m->channels = records(&views[SHARED_RATE], 8);
    m->pools = records(&views[POOL_RATE], 8);
    m->cycles = views[CYCLES].buf;
    m->bytes = views[BYTES].buf;
    m->queue_of = views[QUEUE_OF].buf;
    m->dependency_first = views[DEPENDENCY_FIRST].buf;
    m->dependency_source = views[DEPENDENCY_SOURCE].buf;
    m->lane_first = views[LANE_FIRST].buf;
    m->channel_of = views[CHANNEL_OF].buf;
    m->shared_rate = views[SHARED_RATE].buf;
    m->queue_rate = views[QUEUE_RATE].buf;
    m->latency = views[LATENCY].buf;
    m->pool_first = views[POOL_FIRST].buf;
    m->pool_rate = views[POOL_RATE].buf;
    m->lane_ready = views[LANE_READY].buf;
    m->start = views[START].buf;
    m->issue_end = views[ISSUE_END].buf;
    m->transfer_start = views[TRANSFER_START].buf;
    m->done = views[DONE].buf;
    m->blocker = views[BLOCKER].buf;
    const char *problem = problem_with_sizes(m, views);
    return problem ? problem : problem_with(m);
}

static PyObject *run(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer v[BUFFERS];
    Machine machine = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*y*y*y*y*y*w*w*w*w*w*w*:run", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
                          &v[6], &v[7], &v[8], &v[9], &v[10], &v[11], &v[12], &v[13], &v[14], &v[15], &v[16], &v[17]))
        return NULL;
    const char *problem = fill(&machine, v);
    if (problem) {
        PyErr_SetString(PyExc_ValueError, problem);
    } else if (allocate(&machine) < 0) {
        PyErr_NoMemory();
    } else {
        set_up(&machine);
        if (run_events(&machine) == 0)
            result = PyLong_FromSize_t(machine.finished);
    }
    release(&machine);
    for (int i = 0; i < BUFFERS; i++)
        PyBuffer_Release(&v[i]);
    return result;
}

static PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, "Run a checked program; fill the result columns; return how many commands were done."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "opscope.device._core",
    .m_doc = "The compiled event loop of the simulated device.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
