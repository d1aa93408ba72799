/* What people write on the command line: keys and filters. */
#include "query/query.h"
#include "util/suggest.h"

static enum err find_key(struct str word, enum key *ret, struct error *err)
{
    for (enum key key = 0; key < KEY_COUNT; key++)
        if (str_eq(word, str_of(key_words[key]))) {
            *ret = key;
            return ERR_OK;
        }
    struct strbuf all = {0};
    for (enum key key = 0; key < KEY_COUNT; key++)
        strbuf_addf(&all, "%s%s", key ? ", " : "", key_words[key]);
    const char *near = suggest(word, key_words, KEY_COUNT);
    enum err code =
        error_set(err, ERR_USAGE, "\"%.*s\" is no key%s%s%s: there are %s", STR_ARG(word),
                  near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", all.text);
    strbuf_release(&all);
    return code;
}

static struct str trimmed(struct str s)
{
    while (s.n && s.p[0] == ' ')
        s.p++, s.n--;
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

enum err query_parse_keys(struct str text, struct query *query, struct error *err)
{
    enum key keys[QUERY_KEYS_MAX];
    size_t n = 0;
    for (;;) {
        const char *comma = text.n ? memchr(text.p, ',', text.n) : NULL;
        struct str word = trimmed((struct str){text.p, comma ? (size_t)(comma - text.p) : text.n});
        if (word.n == 0)
            return error_set(err, ERR_USAGE, "a key is missing: write team, or team,model");
        if (n == QUERY_KEYS_MAX)
            return error_set(err, ERR_USAGE, "at most %d keys can be combined", QUERY_KEYS_MAX);
        enum err code = find_key(word, &keys[n], err);
        if (code)
            return code;
        for (size_t i = 0; i < n; i++)
            if (keys[i] == keys[n])
                return error_set(err, ERR_USAGE, "the key %s is there twice", key_words[keys[n]]);
        n++;
        if (!comma)
            break;
        text = (struct str){comma + 1, text.n - (size_t)(comma + 1 - text.p)};
    }
    memcpy(query->keys, keys, sizeof keys);
    query->keys_n = n;
    return ERR_OK;
}

enum err query_parse_filter(struct str text, struct query *query, struct error *err)
{
    const char *equals = text.n ? memchr(text.p, '=', text.n) : NULL;
    if (!equals || equals == text.p)
        return error_set(err, ERR_USAGE,
                         "\"%.*s\" is no filter: write key=value or key!=value (team=search, "
                         "node!=gpu-*)",
                         STR_ARG(text));
    if (query->filters_n == QUERY_FILTERS_MAX)
        return error_set(err, ERR_USAGE, "at most %d filters can be given", QUERY_FILTERS_MAX);
    bool negate = equals[-1] == '!';
    struct str word = trimmed((struct str){text.p, (size_t)(equals - text.p) - negate});
    struct query_filter filter = {.negate = negate};
    enum err code = find_key(word, &filter.key, err);
    if (code)
        return code;
    filter.value = (struct str){equals + 1, text.n - (size_t)(equals + 1 - text.p)};
    query->filters[query->filters_n++] = filter;
    return ERR_OK;
}
