/* Scalars of a configuration as values: times, durations, money, ratios, and the word that was
 * meant. What does not fit is said with its place and with what would fit. */
#include "util/config_file.h"

#include <stdio.h>

#include "util/suggest.h"

enum err config_unknown_key(struct config_node key, const char *const *keys, size_t n,
                            struct error *err)
{
    struct str text = config_text(key);
    const char *near = suggest(text, keys, n);
    if (near)
        return config_error(key, err, "unknown key '%.*s': did you mean '%s'?", STR_ARG(text),
                            near);
    struct strbuf known = {0};
    for (size_t i = 0; i < n && known.n < ERROR_TEXT_MAX / 2; i++)
        strbuf_addf(&known, "%s%s", i ? ", " : "", keys[i]);
    enum err result = config_error(key, err, "unknown key '%.*s': known here are %.*s",
                                   STR_ARG(text), STR_ARG(strbuf_str(&known)));
    strbuf_release(&known);
    return result;
}

bool decimal_parse(struct str text, int places, int64_t max, int64_t *ret)
{
    wide_t value = 0;
    int after = -1; /* decimals so far; -1: no point yet */
    size_t digits = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '.' && after < 0) {
            after = 0;
            continue;
        }
        if (c < '0' || c > '9' || digits++ > 40)
            return false;
        if (after >= 0 && after >= places) {
            if (c != '0')
                return false;
            continue;
        }
        value = value * 10 + (c - '0');
        after += after >= 0;
        if (value > max)
            return false;
    }
    for (int i = after < 0 ? 0 : after; i < places; i++)
        if ((value *= 10) > max)
            return false;
    if (digits == 0 || value > max)
        return false;
    *ret = (int64_t)value;
    return true;
}

bool percent_parse(struct str text, int places, int64_t max, int64_t *ret)
{
    if (text.n && text.p[text.n - 1] == '%')
        text.n--;
    while (text.n && text.p[text.n - 1] == ' ')
        text.n--;
    return decimal_parse(text, places, max, ret);
}

#define DURATION_MAX (36525 * DAY_MS)

static const struct {
    const char *name;
    time_ms ms;
} duration_units[] = {{"ms", 1},      {"s", 1000},   {"m", 60000},
                      {"h", HOUR_MS}, {"d", DAY_MS}, {"w", 7 * DAY_MS}};

static time_ms unit_of(struct str text)
{
    for (size_t i = 0; i < sizeof duration_units / sizeof *duration_units; i++)
        if (str_eq(text, str_of(duration_units[i].name)))
            return duration_units[i].ms;
    return 0;
}

bool duration_parse(struct str text, time_ms bare, time_ms *ret)
{
    wide_t sum = 0;
    size_t i = 0;
    if (text.n == 0)
        return false;
    while (i < text.n) {
        size_t from = i;
        int64_t number;
        while (i < text.n && ((text.p[i] >= '0' && text.p[i] <= '9') || text.p[i] == '.'))
            i++;
        if (!decimal_parse((struct str){text.p + from, i - from}, 6, INT64_MAX, &number))
            return false;
        size_t word = i;
        while (i < text.n && text.p[i] >= 'a' && text.p[i] <= 'z')
            i++;
        time_ms unit = unit_of((struct str){text.p + word, i - word});
        if (word == i && from == 0 && i == text.n)
            unit = bare;
        if (unit == 0)
            return false;
        wide_t part = (wide_t)number * unit;
        if (part % 1000000 != 0)
            return false;
        sum += part / 1000000;
        if (sum > DURATION_MAX)
            return false;
    }
    *ret = (time_ms)sum;
    return true;
}

enum err config_as_text(struct config_node node, struct str *ret, struct error *err)
{
    if (config_kind(node) != CONFIG_SCALAR)
        return config_error(node, err, "a text is needed here");
    struct str text = config_text(node);
    if (memchr(text.p, 0, text.n))
        return config_error(node, err, "a text may not hold a NUL");
    *ret = text;
    return ERR_OK;
}

void config_file_path(struct config_node node, struct strbuf *ret)
{
    struct str path = config_text(node), file = config_file_name(node.file);
    const char *slash = memrchr(file.p, '/', file.n);
    if (slash && path.n && path.p[0] != '/')
        strbuf_add(ret, (struct str){file.p, (size_t)(slash - file.p) + 1});
    strbuf_add(ret, path);
}

enum err config_as_bool(struct config_node node, bool *ret, struct error *err)
{
    static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
    struct str text = config_text(node);
    for (size_t i = 0; i < 3; i++)
        if (str_eq_nocase(text, str_of(yes[i])) || str_eq_nocase(text, str_of(no[i]))) {
            *ret = str_eq_nocase(text, str_of(yes[i]));
            return ERR_OK;
        }
    return config_error(node, err, "true or false is needed here");
}

enum err config_as_int(struct config_node node, int64_t min, int64_t max, int64_t *ret,
                       struct error *err)
{
    long long value;
    if (!str_to_i64(config_text(node), &value) || value < min || value > max)
        return config_error(node, err, "a whole number from %lld to %lld is needed here",
                            (long long)min, (long long)max);
    *ret = value;
    return ERR_OK;
}

enum err config_as_money(struct config_node node, money_t max, money_t *ret, struct error *err)
{
    money_t value;
    char text[MONEY_TEXT_MAX];
    if (!money_parse(config_text(node), &value))
        return config_error(node, err, "'%.*s' is no price: write it as 12.34",
                            STR_ARG(config_text(node)));
    if (value > max)
        return config_error(node, err, "%.*s is more than %s, the most that a price may be",
                            STR_ARG(config_text(node)), money_format(max, text));
    *ret = value;
    return ERR_OK;
}

enum err config_as_time(struct config_node node, time_ms *ret, struct error *err)
{
    if (time_parse(config_text(node), ret))
        return ERR_OK;
    return config_error(node, err, "'%.*s' is no time: write it as 2026-11-30T00:00:00Z",
                        STR_ARG(config_text(node)));
}

enum err config_as_duration(struct config_node node, time_ms bare, time_ms *ret, struct error *err)
{
    if (duration_parse(config_text(node), bare, ret))
        return ERR_OK;
    return config_error(node, err, "'%.*s' is no duration: write it as 30s, 5m or 6h",
                        STR_ARG(config_text(node)));
}

enum err config_as_ratio(struct config_node node, int64_t *ret, struct error *err)
{
    struct str text = config_text(node);
    bool percent = text.n && text.p[text.n - 1] == '%';
    if (percent ? percent_parse(text, 7, NANO, ret) : decimal_parse(text, 9, NANO, ret))
        return ERR_OK;
    return config_error(node, err, "'%.*s' is no ratio: write it as 0.1 or 10%%",
                        STR_ARG(config_text(node)));
}
