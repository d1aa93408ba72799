/* The life of a configuration: defaults, files and options on top of each other, and the check that
 * what came out fits together. */
#include "fleet/config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "fleet/config_sections.h"
#include "fleet/data.h"

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
    config_file_free(config->file);
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

static uint64_t catalogue_digest(void)
{
    static const char *const tables[] = {"gpus.csv", "prices.csv", "cpu_prices.csv"};
    uint64_t digest = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct str text = data_file(str_of(tables[i]));
        digest = XXH3_64bits_withSeed(text.p, text.n, digest);
    }
    return digest;
}

void config_describe(const struct config *config, struct strbuf *ret)
{
    const struct settings *s = &config->settings;
    const struct price_policy *policy = &config->price_policy;
    strbuf_addf(ret, "step=%lld gap=%lld idle=%lld busy=%lld break=%lld starting=%lld frozen=%lld",
                (long long)s->step_ms, (long long)s->gap_ms, (long long)s->idle_below,
                (long long)s->busy_from, (long long)s->node_break_ms, (long long)s->starting_max_ms,
                (long long)s->frozen_ms);
    strbuf_addf(ret, " share=%d split=%d xids=", (int)s->share_policy, (int)s->node_split);
    for (size_t i = 0; i < s->lost_xids_n; i++)
        strbuf_addf(ret, "%s%d", i ? "," : "", s->lost_xids[i]);
    strbuf_addf(ret, " exporters=");
    for (size_t i = 0; i < s->exporter_containers_n; i++)
        strbuf_addf(ret, "%s%.*s", i ? "," : "", STR_ARG(s->exporter_containers[i]));
    strbuf_addf(ret, " cluster=%.*s vcpu=%lld gib=%lld prices=%016" PRIx64 " owners=%016" PRIx64,
                STR_ARG(config->cluster), (long long)policy->vcpu, (long long)policy->gib,
                prices_digest(config->prices), owners_digest(config->owners));
    if (policy->no_catalogue || policy->not_in_usd)
        strbuf_addf(ret, " catalogue=%s", policy->no_catalogue ? "off" : "sizes");
    else
        strbuf_addf(ret, " catalogue=%016" PRIx64, catalogue_digest());
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
