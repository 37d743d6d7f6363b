/* Copyright (c) 2026, the rdma.cluster authors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A stand-in for perftest's ib_write_bw 6.29 that costs next to nothing: a process of its own, a real TCP handshake and
 * its text, without RDMA. A device is called standin_ADDRESS; the server listens there, so that many hosts fit on one
 * machine. The server takes one client and no other, the client does not retry. Both sleep STANDIN_SECONDS, else 1.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINE "---------------------------------------------------------------------------------------\n"

static struct sockaddr_in at(const char *address, const char *port)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (inet_pton(AF_INET, address, &place.sin_addr) != 1) {
        fprintf(stderr, " Unable to find the Infiniband/RoCE device\n");
        exit(1);
    }
    return place;
}

static int accept_one(const char *address, const char *port)
{
    struct sockaddr_in place = at(address, port);
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&place, sizeof place) || listen(listener, 1)) {
        perror(" Unable to bind or listen");
        exit(1);
    }
    printf("\n************************************\n* Waiting for client to connect... *\n************************************\n");
    int connection = accept(listener, NULL, NULL);
    close(listener);
    return connection;
}

static int connect_once(const char *server, const char *port)
{
    struct sockaddr_in place = at(server, port);
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (struct sockaddr *)&place, sizeof place)) {
        fprintf(stderr, "Couldn't connect to %s:%s\n Unable to init the socket connection\n", server, port);
        exit(1);
    }
    return connection;
}

static void shake_hands(int connection)
{
    char line[6] = {0};
    if (write(connection, "hello\n", 6) != 6 || recv(connection, line, 6, MSG_WAITALL) != 6 || memcmp(line, "hello\n", 6)) {
        fprintf(stderr, " Failed to exchange data between server and clients\n");
        exit(1);
    }
}

static void rest(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

int main(int count, char **argv)
{
    const char *device = "", *port = "18515", *size = "65536", *server = NULL, *flag = "dipxsqDnmu";
    for (int i = 1; i < count; i++) {
        if (argv[i][0] != '-') {
            server = argv[i];
        } else if (argv[i][1] != '-' && strchr(flag, argv[i][1]) && i + 1 < count) {
            const char *value = argv[++i];
            switch (argv[i - 1][1]) {
            case 'd': device = value; break;
            case 'p': port = value; break;
            case 's': size = value; break;
            }
        }
    }
    const char *own = strchr(device, '_'), *seconds = getenv("STANDIN_SECONDS");
    int connection = server ? connect_once(server, port) : accept_one(own ? own + 1 : "", port);
    shake_hands(connection);
    rest(seconds ? atof(seconds) : 1.0);
    double average = 97.5, rate = average * 1000 / 8 / atof(size);
    printf(LINE "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : %s\n" LINE, device);
    printf(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n");
    printf(" %-7s    %-10ld       %-7.2f            %-7.2f\t\t     %-7.6f\n" LINE, size, (long)(rate * 1e6), 0.0, average, rate);
    return 0;
}
