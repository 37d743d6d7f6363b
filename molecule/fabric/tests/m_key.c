/* Copyright (c) 2026, the rdma.cluster authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A stand-in for ports with M_KeyProtectBits 2, which ibsim does not have: preloaded before libibumad, it drops each SubnGet and SubnSet whose
 * M_Key is not that of the variable M_KEY, so that the tool waits for an answer that never comes. SMInfo is answered by the subnet manager.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CLASS = 1, METHOD = 3, ATTRIBUTE = 17, KEY = 24, LID_ROUTED = 0x01, DIRECTED = 0x81, GET = 1, SET = 2, SMINFO = 0x20 };

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries)
{
	int (*send)(int, int, void *, int, int, int) = dlsym(RTLD_NEXT, "umad_send");
	unsigned char *(*get)(void *) = dlsym(RTLD_NEXT, "umad_get_mad");
	const unsigned char *mad = get(umad);
	const char *expected = getenv("M_KEY");
	uint64_t key;

	memcpy(&key, mad + KEY, sizeof(key));
	if (expected && (mad[CLASS] == LID_ROUTED || mad[CLASS] == DIRECTED) && (mad[METHOD] == GET || mad[METHOD] == SET) &&
	    mad[ATTRIBUTE] != SMINFO && be64toh(key) != strtoull(expected, NULL, 0))
		return 0;
	return send(fd, agent, umad, length, timeout_ms, retries);
}
