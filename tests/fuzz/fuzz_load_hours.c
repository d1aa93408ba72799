/* Any bytes as a day of hosts, workloads or namespaces: rows, an error, never a crash; and what was
 * read is packed and read again as the same. The first byte says which kind. */
#include <stdlib.h>

#include "store/load_pack.h"
#include "util/error.h"

#define NAMES 64 /* ids that rows may name */
#define DAY 20000

static struct store *store;
static struct names *names;

static void begin(void)
{
    names = names_new();
    invariant(store_open(":memory:", STORE_WRITE, names, &store, NULL) == ERR_OK);
    invariant(store_begin(store, NULL) == ERR_OK);
    for (int i = 0; i < NAMES; i++) {
        char text[16];
        uint32_t id;
        snprintf(text, sizeof text, "name-%d", i);
        name_t name = names_put(names, str_of(text));
        invariant(dictionary_put(store, name, &id, NULL) == ERR_OK);
        invariant(places_put(store, (struct place){NAME_NONE, name}, &id, NULL) == ERR_OK);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (!store)
        begin();
    if (!size)
        return 0;
    enum load_kind kind = (enum load_kind)(data[0] % LOAD_KIND_COUNT);
    struct str bytes = {(const char *)data + 1, size - 1};
    struct load_rows rows = {.layout = &load_layouts[kind]}, again = rows;
    struct strbuf packed = {0};
    if (load_unpack(store, kind, DAY, 1, bytes, &rows, NULL) == ERR_OK) {
        invariant(load_pack(store, &rows, DAY, &packed, NULL) == ERR_OK);
        invariant(load_unpack(store, kind, DAY, 1, strbuf_str(&packed), &again, NULL) == ERR_OK);
        invariant(again.n == rows.n);
        if (rows.n)
            invariant(memcmp(again.at, rows.at, rows.n * rows.layout->size) == 0);
    }
    strbuf_release(&packed);
    free(rows.at);
    free(again.at);
    return 0;
}
