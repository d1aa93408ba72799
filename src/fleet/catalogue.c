/* GPU models and MIG profiles. Tables of a few dozen rows, parsed on first use; texts are views
 * into the embedded files.
 *
 * Names of one model are spelled in many ways: NVML says "NVIDIA A100-SXM4-80GB", the node label
 * nvidia.com/gpu.product "NVIDIA-A100-SXM4-80GB-SHARED", GKE "nvidia-a100-80gb". All are reduced to
 * lower-case words without the vendor in front; the known name that is the longest run of first
 * words wins. */
#include "fleet/catalogue.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

#include "fleet/data.h"
#include "util/config_file.h"
#include "util/csv.h"
#include "util/error.h"

#define MODELS_MAX 96
#define ALIASES_MAX 256
#define PROFILES_MAX 256
#define SHARINGS_MAX 8
#define WORDS_MAX 96 /* bytes of a name in words; longer texts are cut, which no known name is */
#define MIB ((int64_t)1 << 20)

struct alias {
    char words[WORDS_MAX];
    size_t n;
    const struct gpu_model *model;
};

struct sharing {
    struct str name, reason, source;
    bool time_slicing;
};

static struct {
    pthread_once_t once;
    struct gpu_model models[MODELS_MAX];
    struct alias aliases[ALIASES_MAX];
    struct mig_profile profiles[PROFILES_MAX];
    struct sharing sharings[SHARINGS_MAX];
    size_t models_n, aliases_n, profiles_n, sharings_n;
} book = {.once = PTHREAD_ONCE_INIT};

static int64_t whole(struct str text)
{
    long long value = 0;
    invariant(text.n == 0 || str_to_i64(text, &value));
    return value;
}

static int32_t milli(struct str text)
{
    int64_t value = 0;
    invariant(text.n == 0 || decimal_parse(text, 3, INT32_MAX, &value));
    return (int32_t)value;
}

/* Lower-case words with a space between, without vendor words in front; bytes written. */
static size_t words_of(struct str text, char *out)
{
    static const char *const vendors[] = {"nvidia ", "tesla ", "amd ", "instinct "};
    size_t n = 0;
    for (size_t i = 0; i < text.n && n + 2 < WORDS_MAX; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (isalnum(c))
            out[n++] = (char)tolower(c);
        else if (n && out[n - 1] != ' ')
            out[n++] = ' ';
    }
    if (n && out[n - 1] == ' ')
        n--;
    for (size_t k = 0; k < sizeof vendors / sizeof *vendors; k++) {
        size_t head = strlen(vendors[k]);
        if (n > head && memcmp(out, vendors[k], head) == 0) {
            n -= head;
            memmove(out, out + head, n);
        }
    }
    return n;
}

static void add_alias(struct str text, const struct gpu_model *model)
{
    invariant(book.aliases_n < ALIASES_MAX);
    struct alias *alias = &book.aliases[book.aliases_n++];
    alias->n = words_of(text, alias->words);
    alias->model = model;
}

/* The first of a list with '|' between; moves rest behind it. */
static struct str next_name(struct str *rest)
{
    const char *bar = memchr(rest->p, '|', rest->n);
    struct str name = {rest->p, bar ? (size_t)(bar - rest->p) : rest->n};
    size_t gone = name.n + (bar != NULL);
    *rest = (struct str){rest->p + gone, rest->n - gone};
    return name;
}

/* Read before the models. */
static void add_sharing(const struct csv *csv)
{
    enum { NAME, TIME_SLICING, MPS, REASON, SOURCE };
    invariant(book.sharings_n < SHARINGS_MAX && csv->n == SOURCE + 1);
    book.sharings[book.sharings_n++] =
        (struct sharing){csv->fields[NAME], csv->fields[REASON], csv->fields[SOURCE],
                         str_eq(csv->fields[TIME_SLICING], STR("y"))};
}

static void set_sharing(struct gpu_model *model, struct str name)
{
    size_t i = 0;
    while (i < book.sharings_n && !str_eq(book.sharings[i].name, name))
        i++;
    invariant(i < book.sharings_n);
    model->time_slicing = book.sharings[i].time_slicing;
    model->no_slicing = book.sharings[i].reason;
    model->sharing_source = book.sharings[i].source;
}

static void add_model(const struct csv *csv)
{
    enum {
        NAME,
        VENDOR,
        NVML,
        ALIASES,
        MEMORY_MIB,
        POWER_W,
        IDLE_W,
        SLICES,
        TABLE,
        SHARING,
        BANDWIDTH_GBS,
        SMS,
        TFLOPS,
        BF16,
        SPECS,
        CONFIDENCE
    };
    invariant(book.models_n < MODELS_MAX && csv->n == CONFIDENCE + 1);
    struct gpu_model *model = &book.models[book.models_n++];
    struct str nvml = csv->fields[NVML], more = csv->fields[ALIASES];
    *model = (struct gpu_model){
        .name = csv->fields[NAME],
        .vendor = csv->fields[VENDOR],
        .memory_bytes = whole(csv->fields[MEMORY_MIB]) * MIB,
        .power_limit_mw = milli(csv->fields[POWER_W]),
        .idle_mw = milli(csv->fields[IDLE_W]),
        .mig_slices = (int)whole(csv->fields[SLICES]),
        .mig_table = csv->fields[TABLE],
        .bandwidth_gbs = (int)whole(csv->fields[BANDWIDTH_GBS]),
        .sms = (int)whole(csv->fields[SMS]),
        .gflops = milli(csv->fields[TFLOPS]),
        .bf16 = str_eq(csv->fields[BF16], STR("y")),
        .specs = csv->fields[SPECS],
        .low_confidence = str_eq(csv->fields[CONFIDENCE], STR("low")),
    };
    set_sharing(model, csv->fields[SHARING]);
    add_alias(model->name, model);
    while (nvml.n) {
        struct str name = next_name(&nvml);
        if (model->nvml.n == 0)
            model->nvml = name;
        add_alias(name, model);
    }
    while (more.n)
        add_alias(next_name(&more), model);
}

static void add_profile(const struct csv *csv)
{
    enum { TABLE, PROFILE, SLICES, MEMORY_SLICES, MEMORY_MIB, MAX, RESOURCE, PLACEMENTS };
    invariant(book.profiles_n < PROFILES_MAX && csv->n == PLACEMENTS + 1);
    book.profiles[book.profiles_n++] = (struct mig_profile){
        .table = csv->fields[TABLE],
        .name = csv->fields[PROFILE],
        .slices = (int)whole(csv->fields[SLICES]),
        .memory_slices = (int)whole(csv->fields[MEMORY_SLICES]),
        .memory_bytes = whole(csv->fields[MEMORY_MIB]) * MIB,
        .max_instances = (int)whole(csv->fields[MAX]),
        .resource = csv->fields[RESOURCE],
        .placements = csv->fields[PLACEMENTS],
    };
}

/* By their words; of equal ones the model that the table has first. */
static int by_words(const void *a, const void *b)
{
    const struct alias *x = a, *y = b;
    int order = str_cmp((struct str){x->words, x->n}, (struct str){y->words, y->n});
    return order ? order : (x->model > y->model) - (x->model < y->model);
}

/* The model of which these are all the words of a name; NULL: none. */
static const struct gpu_model *model_called(struct str words)
{
    size_t low = 0, high = book.aliases_n;
    while (low < high) { /* the first that is not less */
        size_t mid = (low + high) / 2;
        if (str_cmp((struct str){book.aliases[mid].words, book.aliases[mid].n}, words) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    const struct alias *alias = &book.aliases[low];
    bool same = low < book.aliases_n && str_eq((struct str){alias->words, alias->n}, words);
    return same ? alias->model : NULL;
}

static void build(void)
{
    data_rows(STR("sharing.csv"), add_sharing);
    data_rows(STR("gpus.csv"), add_model);
    qsort(book.aliases, book.aliases_n, sizeof *book.aliases, by_words);
    data_rows(STR("mig_profiles.csv"), add_profile);
}

const struct gpu_model *catalogue_gpu(struct str text)
{
    char words[WORDS_MAX];
    const struct gpu_model *model = NULL;
    pthread_once(&book.once, build);
    size_t n = words_of(text, words);
    for (size_t m = n; m && !model; m--) /* the longest name that the text begins with */
        if (m == n || words[m] == ' ')
            model = model_called((struct str){words, m});
    return model;
}

const struct gpu_model *catalogue_gpus(size_t *ret_n)
{
    pthread_once(&book.once, build);
    *ret_n = book.models_n;
    return book.models;
}

int catalogue_mig_slices(struct str model)
{
    const struct gpu_model *gpu = catalogue_gpu(model);
    return gpu && gpu->mig_slices ? gpu->mig_slices : 7;
}

const struct mig_profile *catalogue_mig_profiles(const struct gpu_model *model, size_t *ret_n)
{
    size_t first = 0, n = 0;
    pthread_once(&book.once, build);
    for (size_t i = 0; model && model->mig_table.n && i < book.profiles_n; i++)
        if (str_eq(book.profiles[i].table, model->mig_table)) {
            if (n == 0)
                first = i;
            n++;
        }
    *ret_n = n;
    return n ? &book.profiles[first] : NULL;
}

/* 1g.10gb+me and the device plugin's 1g.10gb.me are one. */
static bool same_profile(struct str a, struct str b)
{
    for (size_t i = 0; i < a.n && i < b.n; i++)
        if (a.p[i] != b.p[i] && !(memchr("+.", a.p[i], 2) && memchr("+.", b.p[i], 2)))
            return false;
    return a.n == b.n;
}

const struct mig_profile *catalogue_mig_profile(const struct gpu_model *model, struct str name)
{
    size_t n;
    const struct mig_profile *profiles = catalogue_mig_profiles(model, &n);
    for (size_t i = 0; i < n; i++)
        if (same_profile(profiles[i].name, name))
            return &profiles[i];
    return NULL;
}
