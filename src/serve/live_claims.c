#include "serve/live_claims.h"

#include <stdlib.h>

void live_claims_release(struct live_claims *claims)
{
    free(claims->items);
    idmap_release(&claims->by_slot);
    idmap_release(&claims->by_card);
    names_free(claims->names);
    *claims = (struct live_claims){0};
}

/* "NAMESPACE/POD"; neither has a slash of its own. */
static void whole_name(struct strbuf *ret, struct str namespace, struct str pod)
{
    strbuf_addf(ret, "%.*s/%.*s", STR_ARG(namespace), STR_ARG(pod));
}

void live_claims_add(struct live_claims *claims, struct str cluster, struct str device,
                     struct str namespace, struct str pod)
{
    if (!claims->names)
        claims->names = names_new();
    struct names *names = claims->names;
    struct strbuf whole = {0};
    const char *slash = memchr(device.p, '/', device.n);
    struct str uuid = {device.p, slash ? (size_t)(slash - device.p) : device.n};
    struct str part = slash ? (struct str){slash + 1, device.n - uuid.n - 1} : STR_NONE;
    whole_name(&whole, namespace, pod);
    name_t card = names_put(names, uuid), of = names_put(names, cluster);
    idmap_set(&claims->by_card, IDKEY(of, card, names_put(names, strbuf_str(&whole))), 1);
    strbuf_release(&whole);
    if (part.n && memchr(part.p, '/', part.n)) /* a profile */
        return;
    idmap_set(&claims->by_slot, IDKEY(of, card, names_put(names, part)), (uint32_t)claims->n);
    mem_push(claims->items, claims->n, claims->room,
             ((struct live_claim){names_put(names, namespace), names_put(names, pod)}));
}

static bool find(const struct live_claims *claims, const struct str *texts, struct idkey *ret)
{
    *ret = IDKEY(NAME_NONE);
    for (size_t i = 0; i < 3; i++)
        if (texts[i].n && !names_find(claims->names, texts[i], &ret->part[i]))
            return false;
    return true;
}

bool live_claims_pod(const struct live_claims *claims, struct str cluster, struct str uuid,
                     struct str instance, struct str *ret_namespace, struct str *ret_pod)
{
    struct idkey key;
    if (!claims->names || !find(claims, (const struct str[]){cluster, uuid, instance}, &key))
        return false;
    uint32_t at = idmap_get(&claims->by_slot, key);
    if (at == IDMAP_NONE)
        return false;
    *ret_namespace = names_text(claims->names, claims->items[at].namespace);
    *ret_pod = names_text(claims->names, claims->items[at].pod);
    return true;
}

bool live_claims_has(const struct live_claims *claims, struct str cluster, struct str uuid,
                     struct str namespace, struct str pod)
{
    struct idkey key;
    struct strbuf whole = {0};
    if (!claims->names)
        return false;
    whole_name(&whole, namespace, pod);
    bool has = find(claims, (const struct str[]){cluster, uuid, strbuf_str(&whole)}, &key) &&
               idmap_get(&claims->by_card, key) != IDMAP_NONE;
    strbuf_release(&whole);
    return has;
}
