/* The life of a configuration: defaults, files and options on top of each other, and the check that
 * what came out fits together. */
#include "fleet/config.h"

#include <stdlib.h>
#include <unistd.h>

#include "fleet/config_sections.h"

#define DEFAULT_IDLE_POWER (NANO * 15 / 100)

struct config *config_new(void)
{
    struct config *config = mem_zalloc(1, sizeof *config);
    settings_defaults(&config->settings);
    config->idle = (struct idle_settings){
        .days = 7, .floor_samples = 100, .power_auto = true, .power_below = DEFAULT_IDLE_POWER};
    config->prices = prices_new();
    config->from = TIME_MIN;
    config->to = TIME_MAX;
    config->tz = config->cluster = config->path = STR_NONE;
    config->currency = STR("USD");
    config->price_policy = (struct price_policy){.vcpu = -1, .gib = -1};
    return config;
}

void config_free(struct config *config)
{
    if (!config)
        return;
    prices_free(config->prices);
    owners_free(config->owners);
    free(config->options);
    free(config->power_limits);
    arena_release(&config->arena);
    free(config);
}

enum err config_add_prices(struct config *config, const char *path, struct error *err)
{
    return prices_add_csv(config->prices, path, err);
}

enum err config_set_owners(struct config *config, const char *path, struct error *err)
{
    struct owners *owners;
    enum err result = owners_read(path, &owners, err);
    if (result)
        return result;
    owners_free(config->owners);
    config->owners = owners;
    return ERR_OK;
}

enum err config_finish(struct config *config, struct error *err)
{
    const struct settings *settings = &config->settings;
    if (settings->step_ms <= 0)
        return error_set(err, ERR_CONFIG,
                         "step has to be more than 0: the time that one sample "
                         "stands for, such as 30s");
    if (settings->gap_ms < settings->step_ms)
        return error_set(err, ERR_CONFIG, "gap (%lld s) has to be at least step (%lld s)",
                         (long long)(settings->gap_ms / 1000),
                         (long long)(settings->step_ms / 1000));
    if (settings->idle_below > settings->busy_from)
        return error_set(err, ERR_CONFIG, "idle_below has to be at most busy_from");
    if (config->from >= config->to)
        return error_set(err, ERR_CONFIG, "from has to be before to");
    config->price_policy.node_split = settings->node_split;
    config->price_policy.not_in_usd = !str_eq(config->currency, STR("USD"));
    prices_set_policy(config->prices, &config->price_policy);
    prices_ready(config->prices);
    if (!config->owners)
        config->owners = owners_new_default();
    return ERR_OK;
}

static bool found(struct config *config, const char *folder, const char *below, struct str *ret)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s%s/gputally/config.yaml", folder, below);
    bool there = access(path.text, R_OK) == 0;
    if (there)
        *ret = str_keep(&config->arena, strbuf_str(&path));
    strbuf_release(&path);
    return there;
}

bool config_default_path(struct config *config, struct str *ret)
{
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (folder && *folder) {
        if (found(config, folder, "", ret))
            return true;
    } else if (home && *home && found(config, home, "/.config", ret)) {
        return true;
    }
    return found(config, "/etc", "", ret);
}
