/* From the command line, the environment and the configuration to what the service is told; shared
 * by serve, each of its reloads, and config check. */
#ifndef GPUTALLY_CMD_SERVE_LOAD_H
#define GPUTALLY_CMD_SERVE_LOAD_H

#include "cmd/options.h"
#include "serve/service.h"

/* Reads the command line of `outer` and everything that it names anew; path: the configuration to
 * take (NULL: what the command line says). Nothing is left to unload after an error. */
enum err serve_load(const struct options *outer, const char *path, struct service_setup *ret,
                    struct error *err);
void serve_unload(struct service_setup *setup);

#endif
