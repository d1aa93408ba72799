/* Inside of the configuration, for config.c (life cycle), config_read.c (settings and sections) and
 * config_prices.c (everything about prices). Nobody else includes it. */
#ifndef GPUTALLY_FLEET_CONFIG_SECTIONS_H
#define GPUTALLY_FLEET_CONFIG_SECTIONS_H

#include "fleet/config.h"
#include "util/config_file.h"

/* prices: a file, a list of files, or a mapping. */
enum err config_prices_section(struct config *config, struct config_node node, struct error *err);
/* price_overrides: {NODE: USD an hour}. */
enum err config_price_overrides(struct config *config, struct config_node node, struct error *err);
/* model_prices: {MODEL: USD an hour and GPU}, or a list of rules. */
enum err config_model_prices(struct config *config, struct config_node node, struct error *err);

enum err config_node_split(struct config *config, struct config_node node, struct error *err);
/* A path as the file has it: relative to the file's folder. Lives in the configuration's arena. */
const char *config_path(struct config *config, struct config_node node);
/* What reading the file that a node names gave: where it cannot be read, with the node's place. */
enum err config_in_file(struct config_node node, enum err code, struct error *err);

#endif
