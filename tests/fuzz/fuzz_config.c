/* Configurations from strangers: nothing crashes or hangs, an error has a text, and what was taken
 * can be used. Files that a text names are opened, so texts that name devices are passed over. */
#include <stdlib.h>

#include "fleet/config.h"

static bool names_a_device(struct str text)
{
    static const char *const folders[] = {"/dev", "/proc", "/sys"};
    for (size_t i = 0; i < 3; i++)
        if (memmem(text.p, text.n, folders[i], strlen(folders[i])))
            return true;
    return false;
}

static void use(struct config *config)
{
    struct label label = {STR("team"), STR("a")};
    struct owner_query owner = {
        .namespace = STR("ns"), .workload = STR("Job/x"), .labels = &label, .labels_n = 1};
    struct price_query query = {
        .node = STR("n1"), .instance_type = STR("t"), .labels = &label, .labels_n = 1};
    struct arena scratch = {0};
    struct price price;
    bool is_default;
    prices_find(config->prices, &query, &price);
    invariant(price.num >= 0 && price.num / price.den <= PRICE_MAX);
    invariant(price.from <= query.at && query.at < price.to);
    invariant(owners_team(config->owners, &owner, &scratch, &is_default).n > 0);
    invariant(owners_type(config->owners, &owner) != WORKLOAD_NONE);
    arena_release(&scratch);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct error err = {0};
    if (names_a_device(text))
        return 0;
    struct config *config = config_new();
    if (config_read_text(config, "c.yaml", text, &err) == ERR_OK &&
        config_finish(config, &err) == ERR_OK)
        use(config);
    else
        invariant(err.text[0] != 0);
    config_free(config);
    return 0;
}
