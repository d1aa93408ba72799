/* Are the files and folders there that a configuration of the service names, and can they be used?
 * For `config check`: a running service tells of what is missing where it needs it, and goes on.
 * Opens no connection, writes nothing. */
#ifndef GPUTALLY_SERVE_SERVE_CHECK_H
#define GPUTALLY_SERVE_SERVE_CHECK_H

#include "fleet/config.h"

/* config was read by serve_config_read. ERR_CONFIG: the first that is wrong, with the place of its
 * key, and what to do. No secret is in the text. */
enum err serve_check_files(const struct config *config, struct error *err);

#endif
