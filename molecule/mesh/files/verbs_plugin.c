/* Copyright (c) 2026, the rdma.cluster authors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A stand-in for nccl-mesh-plugin: interface v8 of NCCL's network plugins, with one reliable queue pair a connection. It shares no code with
 * the real plugin. It exists to move bytes between two machines as a plugin does, so that the role and the gate can be tested.
 *
 * Two variables of the real plugin work: NCCL_MESH_GID_INDEX, and NCCL_MESH_DISABLE_RDMA=1, which sends the data over TCP. The devices stay
 * the same then, so only the port counters show the difference.
 *
 * The GID of a device is an IPv4 address (RoCE v2). A listening end waits for TCP there; both ends exchange queue pair and GID by TCP.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef void (*logger)(int, unsigned long, const char *, int, const char *, ...);
enum { OK = 0, SYSTEM = 2, ARGUMENT = 4, REMOTE = 6, HOST = 1, WARN = 2, MOST = 16, DEPTH = 16, WAIT_MS = 10000 };

struct properties {
    char *name, *pci;
    uint64_t guid;
    int memory, global, speed, port;
    float latency;
    int comms, receives, device_type, device_version;
};
struct device { struct ibv_context *verbs; union ibv_gid gid; enum ibv_mtu mtu; };
struct handle { uint32_t address; uint16_t port; };
struct hello { uint32_t number; union ibv_gid gid; };
struct end { int socket; struct device *device; struct ibv_pd *domain; struct ibv_cq *queue; struct ibv_qp *pair; };
struct request { struct end *end; char *data; size_t size, moved; int sends, done; };
static struct device found[MOST];
static int count;
static logger say;

static int number_of(const char *name, int otherwise) {
    const char *set = getenv(name);
    return set ? atoi(set) : otherwise;
}
static int by_tcp(void) { return number_of("NCCL_MESH_DISABLE_RDMA", 0); }
static int failed(const char *what) {
    say(WARN, ~0UL, __FILE__, __LINE__, what);
    return SYSTEM;
}
static int init(logger log) {
    struct ibv_device **all = ibv_get_device_list(0);
    say = log;
    count = 0;
    for (int n = 0; all && all[n] && count < MOST; n++) {
        struct device *d = &found[count];
        struct ibv_port_attr port;
        if (!(d->verbs = ibv_open_device(all[n]))) continue;
        if (ibv_query_port(d->verbs, 1, &port) || port.state != IBV_PORT_ACTIVE
            || ibv_query_gid(d->verbs, 1, number_of("NCCL_MESH_GID_INDEX", 3), &d->gid)
            || !IN6_IS_ADDR_V4MAPPED((struct in6_addr *)d->gid.raw)) {
            ibv_close_device(d->verbs);
            continue;
        }
        d->mtu = port.active_mtu;
        count++;
    }
    return count ? OK : failed("the stand-in found no port with an IPv4 GID");
}
static int devices(int *n) { *n = count; return OK; }
static int properties(int dev, struct properties *p) {
    if (dev < 0 || dev >= count) return ARGUMENT;
    memset(p, 0, sizeof *p);
    p->name = (char *)ibv_get_device_name(found[dev].verbs->device);
    p->guid = dev; p->memory = HOST; p->speed = 10000; p->port = 1; p->comms = DEPTH; p->receives = 1;
    return OK;
}
/* The address is that of the device: the data stays on its cable. */
static struct sockaddr_in address_of(struct device *d) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    memcpy(&at.sin_addr, d->gid.raw + 12, 4);
    return at;
}
static int whole(int fd, void *data, size_t size, int sends) {
    for (size_t done = 0; done < size;) {
        struct pollfd ready = {fd, sends ? POLLOUT : POLLIN, 0};
        ssize_t n = poll(&ready, 1, WAIT_MS) == 1 ? sends ? send(fd, (char *)data + done, size - done, MSG_NOSIGNAL)
                                                          : recv(fd, (char *)data + done, size - done, 0) : -1;
        if (n <= 0) return failed("the stand-in's partner gave no answer");
        done += n;
    }
    return OK;
}
static int close_(void *opaque) {
    struct end *e = opaque;
    if (e->pair) ibv_destroy_qp(e->pair);
    if (e->queue) ibv_destroy_cq(e->queue);
    if (e->domain) ibv_dealloc_pd(e->domain);
    close(e->socket);
    free(e);
    return OK;
}
/* Connect the queue pair of an end with that of its partner, which has made one too. */
static int joined(struct end *e) {
    struct device *d = e->device;
    struct hello mine, other;
    struct ibv_qp_init_attr made = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {DEPTH, DEPTH, 1, 1, 0}};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    int flags = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (!(e->domain = ibv_alloc_pd(d->verbs)) || !(e->queue = ibv_create_cq(d->verbs, 2 * DEPTH, 0, 0, 0))) return failed("no queue");
    made.send_cq = made.recv_cq = e->queue;
    if (!(e->pair = ibv_create_qp(e->domain, &made)) || ibv_modify_qp(e->pair, &a, flags)) return failed("no queue pair");
    mine = (struct hello){e->pair->qp_num, d->gid};
    if (whole(e->socket, &mine, sizeof mine, 1) || whole(e->socket, &other, sizeof other, 0)) return REMOTE;
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR, .path_mtu = d->mtu, .dest_qp_num = other.number, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1,
                    .grh = {.dgid = other.gid, .sgid_index = number_of("NCCL_MESH_GID_INDEX", 3), .hop_limit = 64}},
    };
    flags = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC
            | IBV_QP_MIN_RNR_TIMER;
    if (ibv_modify_qp(e->pair, &a, flags)) return failed("the queue pair cannot receive");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    flags = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    if (ibv_modify_qp(e->pair, &a, flags)) return failed("the queue pair cannot send");
    /* A message that comes before the partner can receive would be lost, and only repeated after a timeout. */
    return whole(e->socket, "r", 1, 1) || whole(e->socket, &mine, 1, 0) ? REMOTE : OK;
}
static int end_of(int fd, struct device *d, void **out) {
    struct end *e = calloc(1, sizeof *e);
    e->socket = fd;
    e->device = d;
    if (joined(e)) { close_(e); return REMOTE; }
    *out = e;
    return OK;
}
static int listen_(int dev, void *opaque, void **out) {
    struct sockaddr_in at = address_of(&found[dev]);
    socklen_t size = sizeof at;
    struct end *e = calloc(1, sizeof *e);
    e->device = &found[dev];
    e->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(e->socket, (struct sockaddr *)&at, sizeof at) || listen(e->socket, 1)) return failed("no port to listen on");
    getsockname(e->socket, (struct sockaddr *)&at, &size);
    *(struct handle *)opaque = (struct handle){at.sin_addr.s_addr, at.sin_port};
    *out = e;
    return OK;
}
static int connect_(int dev, void *opaque, void **out, void **of_device) {
    struct handle *h = opaque;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = h->port, .sin_addr = {h->address}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *of_device = 0;
    if (connect(fd, (struct sockaddr *)&at, sizeof at)) { close(fd); return failed("no connection to the partner"); }
    return end_of(fd, &found[dev], out);
}
static int accept_(void *opaque, void **out, void **of_device) {
    struct end *listener = opaque;
    int fd = accept(listener->socket, 0, 0);
    *of_device = 0;
    if (fd < 0) return errno == EAGAIN ? OK : SYSTEM;
    return end_of(fd, listener->device, out);
}
static int register_(void *comm, void *data, size_t size, int type, void **out) {
    struct end *e = comm;
    if (type != HOST) return ARGUMENT;
    return (*out = ibv_reg_mr(e->domain, data, size, IBV_ACCESS_LOCAL_WRITE)) ? OK : failed("the memory cannot be registered");
}
static int deregister(void *comm, void *memory) { return comm && !ibv_dereg_mr(memory) ? OK : SYSTEM; }
static int start(struct end *e, void *data, size_t size, struct ibv_mr *memory, int sends, void **out) {
    struct request *r = calloc(1, sizeof *r);
    struct ibv_sge piece = {(uintptr_t)data, size, memory->lkey};
    struct ibv_send_wr send = {.wr_id = (uintptr_t)r, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    struct ibv_recv_wr receive = {.wr_id = (uintptr_t)r, .sg_list = &piece, .num_sge = 1}, *worse;
    *r = (struct request){.end = e, .data = data, .size = size, .sends = sends};
    *out = r;
    if (by_tcp()) return OK;
    return (sends ? ibv_post_send(e->pair, &send, &bad) : ibv_post_recv(e->pair, &receive, &worse)) ? failed("not posted") : OK;
}
static int send_(void *comm, void *data, int size, int tag, void *memory, void **out) {
    (void)tag;
    return start(comm, data, size, memory, 1, out);
}
static int receive(void *comm, int n, void **data, int *sizes, int *tags, void **memory, void **out) {
    (void)tags;
    return n == 1 ? start(comm, data[0], sizes[0], memory[0], 0, out) : ARGUMENT;
}
static int moved_by_tcp(struct request *r) {
    int fd = r->end->socket;
    ssize_t n = r->sends ? send(fd, r->data + r->moved, r->size - r->moved, MSG_NOSIGNAL | MSG_DONTWAIT)
                         : recv(fd, r->data + r->moved, r->size - r->moved, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN ? OK : REMOTE;
    r->moved += n;
    r->done = r->moved == r->size;
    return n ? OK : REMOTE;
}
static int moved_by_verbs(struct end *e) {
    struct ibv_wc got;
    while (ibv_poll_cq(e->queue, 1, &got) == 1) {
        struct request *ended = (struct request *)(uintptr_t)got.wr_id;
        if (got.status != IBV_WC_SUCCESS) return failed(ibv_wc_status_str(got.status));
        ended->moved = ended->sends ? ended->size : got.byte_len;
        ended->done = 1;
    }
    return OK;
}
static int test(void *opaque, int *done, int *sizes) {
    struct request *r = opaque;
    int code = by_tcp() ? moved_by_tcp(r) : moved_by_verbs(r->end);
    *done = r->done;
    if (code || !r->done) return code;
    if (sizes) sizes[0] = r->moved;
    free(r);
    return OK;
}
const struct {
    const char *name;
    int (*init)(logger);
    int (*devices)(int *);
    int (*properties)(int, struct properties *);
    int (*listen)(int, void *, void **);
    int (*connect)(int, void *, void **, void **);
    int (*accept)(void *, void **, void **);
    int (*register_)(void *, void *, size_t, int, void **);
    void *register_dmabuf;
    int (*deregister)(void *, void *);
    int (*send)(void *, void *, int, int, void *, void **);
    int (*receive)(void *, int, void **, int *, int *, void **, void **);
    void *flush;
    int (*test)(void *, int *, int *);
    int (*close_send)(void *), (*close_receive)(void *), (*close_listen)(void *);
    void *rest[8];
} ncclNetPlugin_v8 = {
    .name = "stand-in", .init = init, .devices = devices, .properties = properties, .listen = listen_, .connect = connect_,
    .accept = accept_, .register_ = register_, .deregister = deregister, .send = send_, .receive = receive, .test = test,
    .close_send = close_, .close_receive = close_, .close_listen = close_,
};
