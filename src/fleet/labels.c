#include "fleet/labels.h"

#include <pthread.h>

#include "util/error.h"

#define SPELLINGS_MAX 6

static const char *const gpu_label_spellings[GPU_LABEL_COUNT][SPELLINGS_MAX] = {
#define X(name, ...) {__VA_ARGS__},
    GPU_LABEL_TABLE(X)
#undef X
};

/* The spellings by a hash of the name, so that a label is looked up once: most are none. */
#define INDEX_SIZE 256u
#define INDEX_FULL 86u /* a third */

static struct spelling {
    struct str name; /* p NULL: a free place */
    enum gpu_label role;
    int rank; /* the first spelling of a role is 0 */
} spelling_index[INDEX_SIZE];
static pthread_once_t spelling_once = PTHREAD_ONCE_INIT;

static uint32_t spelling_hash(struct str name)
{
    unsigned char first = (unsigned char)name.p[0], last = (unsigned char)name.p[name.n - 1];
    return ((uint32_t)name.n * 37 + first * 11u + last * 5u) % INDEX_SIZE;
}

static void index_spellings(void)
{
    uint32_t n = 0;
    for (int role = 0; role < GPU_LABEL_COUNT; role++)
        for (int k = 0; k < SPELLINGS_MAX && gpu_label_spellings[role][k]; k++) {
            struct str name = str_of(gpu_label_spellings[role][k]);
            uint32_t at = spelling_hash(name);
            while (spelling_index[at].name.p)
                at = (at + 1) % INDEX_SIZE;
            spelling_index[at] = (struct spelling){name, (enum gpu_label)role, k};
            invariant(++n <= INDEX_FULL);
        }
}

static const struct spelling *spelling_of(struct str name)
{
    if (name.n == 0)
        return NULL;
    uint32_t at = spelling_hash(name);
    for (; spelling_index[at].name.p; at = (at + 1) % INDEX_SIZE)
        if (str_eq(spelling_index[at].name, name))
            return &spelling_index[at];
    return NULL;
}

void gpu_labels_find(const struct label *labels, size_t n, struct str value[GPU_LABEL_COUNT])
{
    int rank[GPU_LABEL_COUNT];
    pthread_once(&spelling_once, index_spellings);
    for (int role = 0; role < GPU_LABEL_COUNT; role++) {
        value[role] = STR_NONE;
        rank[role] = SPELLINGS_MAX;
    }
    for (size_t i = 0; i < n; i++) {
        const struct spelling *spelling = spelling_of(labels[i].name);
        if (!spelling || labels[i].value.n == 0 || spelling->rank >= rank[spelling->role])
            continue;
        value[spelling->role] = labels[i].value;
        rank[spelling->role] = spelling->rank;
    }
}

void gpu_labels_read(const struct label *labels, size_t n, struct names *names,
                     name_t value[GPU_LABEL_COUNT])
{
    struct str found[GPU_LABEL_COUNT];
    gpu_labels_find(labels, n, found);
    for (int role = 0; role < GPU_LABEL_COUNT; role++)
        value[role] = found[role].n ? names_put(names, found[role]) : NAME_NONE;
}

static char plain(char c)
{
    bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return alnum ? c : '_';
}

bool label_name_same(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (plain(a.p[i]) != plain(b.p[i]))
            return false;
    return true;
}

static struct str first_of(const struct label *labels, size_t n, const char *const *spellings)
{
    for (; *spellings; spellings++)
        for (size_t i = 0; i < n; i++)
            if (labels[i].value.n && label_name_same(labels[i].name, str_of(*spellings)))
                return labels[i].value;
    return STR_NONE;
}

static const char *const instance_type_labels[] = {"node.kubernetes.io/instance-type",
                                                   "beta.kubernetes.io/instance-type", NULL};
static const char *const region_labels[] = {"topology.kubernetes.io/region",
                                            "failure-domain.beta.kubernetes.io/region", NULL};
static const char *const pool_labels[] = {"karpenter.sh/nodepool",
                                          "karpenter.sh/provisioner-name",
                                          "eks.amazonaws.com/nodegroup",
                                          "alpha.eksctl.io/nodegroup-name",
                                          "cloud.google.com/gke-nodepool",
                                          "kubernetes.azure.com/agentpool",
                                          "agentpool",
                                          "node.kubernetes.io/pool",
                                          "doks.digitalocean.com/node-pool",
                                          NULL};

/* Which label says how a node is bought, and by which value; values in any case. */
static const struct {
    const char *label, *value;
    enum capacity_type capacity;
} capacity_rules[] = {
    {"karpenter.sh/capacity-type", "spot", CAPACITY_SPOT},
    {"karpenter.sh/capacity-type", "reserved", CAPACITY_RESERVED},
    {"karpenter.sh/capacity-type", "on-demand", CAPACITY_ON_DEMAND},
    {"eks.amazonaws.com/capacity-type", "spot", CAPACITY_SPOT},
    {"eks.amazonaws.com/capacityType", "spot", CAPACITY_SPOT},
    {"eks.amazonaws.com/capacityType", "capacity_block", CAPACITY_RESERVED},
    {"eks.amazonaws.com/capacityType", "on_demand", CAPACITY_ON_DEMAND},
    {"cloud.google.com/gke-spot", "true", CAPACITY_SPOT},
    {"cloud.google.com/gke-preemptible", "true", CAPACITY_SPOT},
    {"cloud.google.com/gke-provisioning", "spot", CAPACITY_SPOT},
    {"kubernetes.azure.com/scalesetpriority", "spot", CAPACITY_SPOT},
    {"node.kubernetes.io/lifecycle", "spot", CAPACITY_SPOT},
    {"lifecycle", "ec2spot", CAPACITY_SPOT},
    {"lifecycle", "spot", CAPACITY_SPOT},
    {"node-role.kubernetes.io/spot-worker", "true", CAPACITY_SPOT},
};

struct node_attributes node_attributes_read(const struct label *labels, size_t n)
{
    struct node_attributes out = {
        .instance_type = first_of(labels, n, instance_type_labels),
        .region = first_of(labels, n, region_labels),
        .pool = first_of(labels, n, pool_labels),
        .capacity = CAPACITY_UNKNOWN,
    };
    for (size_t k = 0; k < sizeof capacity_rules / sizeof *capacity_rules; k++) {
        const char *const name[] = {capacity_rules[k].label, NULL};
        if (str_eq_nocase(first_of(labels, n, name), str_of(capacity_rules[k].value))) {
            out.capacity = capacity_rules[k].capacity;
            break;
        }
    }
    static const char *const replicas_label[] = {"nvidia.com/gpu.replicas", NULL};
    long long replicas;
    if (str_to_i64(first_of(labels, n, replicas_label), &replicas) && replicas > 0)
        out.replicas = replicas;
    return out;
}

struct str cloud_of_provider(struct str provider_id)
{
    const char *colon = memchr(provider_id.p, ':', provider_id.n);
    struct str cloud = {provider_id.p, colon ? (size_t)(colon - provider_id.p) : provider_id.n};
    return str_eq(cloud, STR("gce")) ? STR("gcp") : cloud;
}
