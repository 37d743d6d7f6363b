/* Copyright (c) 2026, the rdma.cluster authors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A stand-in for a network plugin of NCCL: it moves the data by TCP, and calls no verbs. It exists to test the program that calls plugins.
 *
 * VERSION: of the interface, 6 to 12. VERBS: refer to a function of libibverbs all the same. NO_SEND: isend is NULL in the table.
 * STANDIN_FAULT (environment): hang, crash, exit: in accept; refuse: connect fails; alter: one byte arrives with another value; short: a
 * message arrives with another size; large: listen writes a handle that is larger than NCCL's; slow: the first calls return nothing yet;
 * late: init takes three seconds; impatient: accept gives the partner one second from listen on.
 * STANDIN_DEVICE: the name of the device; else mlx5_0.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef void (*logger)(int, unsigned long, const char *, int, const char *, ...);
enum { OK = 0, SYSTEM = 2, ARGUMENT = 4, REMOTE = 6, PROGRESS = 7, HOST = 1 };
static const uint32_t MARK = 0x5374616e;

/* Arguments that some versions have. */
#if VERSION >= 11
#define CONTEXT void *context,
#define INIT void **context, uint64_t id, void *config, logger log, void *profiler
static int mark;
#elif VERSION >= 10
#define CONTEXT
#define INIT logger log, void *profiler
#else
#define CONTEXT
#define INIT logger log
#endif
#if VERSION == 10
#define CONFIG int *config,
#else
#define CONFIG
#endif
#if VERSION >= 10
#define PROFILED void *phandle,
#define PROFILES void **phandles,
#else
#define PROFILED
#define PROFILES
#endif
#if VERSION >= 9
typedef size_t size_type;
#else
typedef int size_type;
#endif
#if VERSION >= 8
typedef size_t memory_size;
#else
typedef int memory_size;
#endif
#if VERSION >= 7
#define OF_DEVICE , void **of_device
#define NO_DEVICE_HANDLE *of_device = 0;
#else
#define OF_DEVICE
#define NO_DEVICE_HANDLE
#endif

struct properties {
    char *name, *pci;
    uint64_t guid;
    int memory;
#if VERSION >= 8
    int global;
#endif
#if VERSION >= 9
    int flush;
#endif
    int speed, port;
    float latency;
    int comms, receives;
    char rest[64];
};
struct handle { uint32_t mark; uint16_t port; };
struct end { int socket, calls; };
struct request { int socket, sends, altered; char *data; size_t size, moved; };
static logger say;
static double listened;

static int fault(const char *name) {
    const char *set = getenv("STANDIN_FAULT");
    return set && !strcmp(set, name);
}
static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}
static int init(INIT) {
    say = log;
    if (fault("late")) sleep(3);
#if VERSION >= 11
    *context = &mark;
    if (*(int *)config != -1) return ARGUMENT;
#endif
    return OK;
}
static int devices(int *n) { *n = 2; return OK; }
static int properties(int dev, struct properties *p) {
    char *name = getenv("STANDIN_DEVICE");
    memset(p, 0, sizeof *p);
    p->name = dev == 0 ? "mlx5_9" : name ? name : "mlx5_0";
    p->memory = HOST; p->speed = 400000; p->port = 1; p->receives = 1;
    return OK;
}
static int listen_(CONTEXT int dev, void *opaque, void **out) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    struct handle *h = opaque;
    struct end *e = calloc(1, sizeof *e);
#if VERSION >= 11
    if (context != &mark) return ARGUMENT;
#endif
    e->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (dev != 1 || bind(e->socket, (struct sockaddr *)&at, sizeof at) || listen(e->socket, 1)) return SYSTEM;
    getsockname(e->socket, (struct sockaddr *)&at, &size);
    h->mark = MARK; h->port = at.sin_port;
    if (fault("large")) memset(opaque, 1, 129);
    listened = now();
    *out = e;
    return OK;
}
static int connect_(CONTEXT int dev, CONFIG void *opaque, void **out OF_DEVICE) {
    static struct end *e;
    struct handle *h = opaque;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = h->port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    NO_DEVICE_HANDLE
#if VERSION >= 11
    if (context != &mark) return ARGUMENT;
#endif
#if VERSION == 10
    if (*config != -1) return ARGUMENT;
#endif
    if (fault("refuse")) { say(2, 0, __FILE__, __LINE__, "no path to %s", "the partner"); return REMOTE; }
    if (dev != 1 || h->mark != MARK) return ARGUMENT;
    if (!e) { e = calloc(1, sizeof *e); e->socket = socket(AF_INET, SOCK_STREAM, 0); }
    if (fault("slow") && e->calls++ < 3) return e->calls % 2 ? OK : PROGRESS;
    if (connect(e->socket, (struct sockaddr *)&at, sizeof at)) return SYSTEM;
    fcntl(e->socket, F_SETFL, O_NONBLOCK);
    *out = e;
    return OK;
}
static int accept_(void *opaque, void **out OF_DEVICE) {
    struct end *listener = opaque, *e;
    int got;
    NO_DEVICE_HANDLE
    if (fault("crash")) *(volatile int *)0 = 1;
    if (fault("exit")) { printf("a plugin that prints and exits\n"); exit(3); }
    while (fault("hang")) pause();
    got = accept4(listener->socket, 0, 0, SOCK_NONBLOCK);
    if (got < 0 && fault("impatient") && now() > listened + 1) return REMOTE;
    if (got < 0) return errno == EAGAIN ? OK : SYSTEM;
    e = calloc(1, sizeof *e);
    e->socket = got;
    *out = e;
    return OK;
}
static int register_(void *comm, void *data, memory_size size, int type, void **out) {
    if (!comm || !data || size <= 0 || type != HOST) return ARGUMENT;
    *out = data;
    return OK;
}
static int deregister(void *comm, void *memory) { return comm && memory ? OK : ARGUMENT; }
static int start(struct end *e, void *data, size_t size, int sends, void **out) {
    struct request *r;
    if (fault("slow") && e->calls++ % 2 == 0) { *out = 0; return OK; }
    r = calloc(1, sizeof *r);
    r->socket = e->socket; r->sends = sends; r->data = data; r->size = size;
    *out = r;
    return OK;
}
#ifndef NO_SEND
static int send_(void *comm, void *data, size_type size, int tag, void *memory, PROFILED void **out) {
    return tag == 7 && memory ? start(comm, data, size, 1, out) : ARGUMENT;
}
#endif
static int receive(void *comm, int n, void **data, size_type *sizes, int *tags, void **memory, PROFILES void **out) {
    return n == 1 && tags[0] == 7 && memory[0] ? start(comm, data[0], sizes[0], 0, out) : ARGUMENT;
}
static int test(void *opaque, int *done, int *sizes) {
    struct request *r = opaque;
    ssize_t n = r->sends ? send(r->socket, r->data + r->moved, r->size - r->moved, MSG_NOSIGNAL)
                         : recv(r->socket, r->data + r->moved, r->size - r->moved, 0);
    *done = 0;
    if (n < 0) return errno == EAGAIN ? OK : REMOTE;
    if (n == 0) return REMOTE;
    r->moved += n;
    if (r->moved < r->size) return OK;
    if (!r->sends && fault("alter") && !r->altered++) r->data[r->size / 2] ^= 1;
    *done = 1;
    if (sizes) sizes[0] = r->size - (fault("short") ? 1 : 0);
    free(r);
    return OK;
}
static int close_(void *opaque) {
    struct end *e = opaque;
    close(e->socket);
    free(e);
    return OK;
}
#ifdef VERBS
extern void **ibv_get_device_list(int *);
void *calls_verbs(int *n) { return ibv_get_device_list(n); }
#endif
struct table {
    const char *name;
    int (*init)(INIT);
    int (*devices)(int *);
    int (*properties)(int, struct properties *);
    int (*listen)(CONTEXT int, void *, void **);
    int (*connect)(CONTEXT int, CONFIG void *, void ** OF_DEVICE);
    int (*accept)(void *, void ** OF_DEVICE);
    int (*register_)(void *, void *, memory_size, int, void **);
    void *register_dmabuf;
    int (*deregister)(void *, void *);
    int (*send)(void *, void *, size_type, int, void *, PROFILED void **);
    int (*receive)(void *, int, void **, size_type *, int *, void **, PROFILES void **);
    void *flush;
    int (*test)(void *, int *, int *);
    int (*close_send)(void *), (*close_receive)(void *), (*close_listen)(void *);
    void *rest[8];
};
#define TABLE2(v) ncclNetPlugin_v##v
#define TABLE(v) TABLE2(v)
const struct table TABLE(VERSION) = {
    .name = "stand-in", .init = init, .devices = devices, .properties = properties, .listen = listen_, .connect = connect_,
    .accept = accept_, .register_ = register_, .deregister = deregister, .receive = receive, .test = test,
#ifndef NO_SEND
    .send = send_,
#endif
    .close_send = close_, .close_receive = close_, .close_listen = close_,
};
