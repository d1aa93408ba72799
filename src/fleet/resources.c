#include "fleet/resources.h"

#include <math.h>

bool resource_is_gpu(struct str resource)
{
    if (str_starts(resource, STR("nvidia_com_gpucores")) ||
        str_starts(resource, STR("nvidia_com_gpumem")))
        return false;
    return str_starts(resource, STR("nvidia_com_")) || str_eq(resource, STR("amd_com_gpu"));
}

bool resource_fraction(struct str resource, double value, struct frac *ret)
{
    struct str milli = STR("gpu_milli");
    bool is_milli =
        resource.n >= milli.n && memcmp(resource.p + resource.n - milli.n, milli.p, milli.n) == 0;
    double most = is_milli ? 1000 : 100;
    if (!is_milli && !str_eq(resource, STR("nvidia_com_gpucores")))
        return false;
    if (!(value > 0 && value <= most) || floor(value) < 1)
        return false;
    *ret = frac_of((int64_t)value, is_milli ? 1000 : 100);
    return true;
}

struct str resource_mig_profile(struct str resource)
{
    struct str head = STR("nvidia_com_mig_");
    if (!str_starts(resource, head))
        return STR_NONE;
    return (struct str){resource.p + head.n, resource.n - head.n};
}

bool mig_profile_is(struct str profile, struct str spelled)
{
    if (profile.n != spelled.n || profile.n == 0)
        return false;
    for (size_t i = 0; i < profile.n; i++) {
        char c = profile.p[i];
        if ((c == '.' || c == '+' ? '_' : c) != spelled.p[i])
            return false;
    }
    return true;
}

struct str resource_spell(struct arena *arena, struct str resource)
{
    char *out = arena_alloc(arena, resource.n + 1);
    for (size_t i = 0; i < resource.n; i++) {
        char c = resource.p[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        out[i] = alnum ? c : '_';
    }
    out[resource.n] = 0;
    return (struct str){out, resource.n};
}

/* Digits at s[*at], followed by `unit` and a dot; moves *at past the dot. */
static bool slices(struct str s, size_t *at, char unit, int *ret)
{
    size_t i = *at;
    int value = 0;
    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9' && value < 1000)
        value = value * 10 + (s.p[i++] - '0');
    if (i == *at || i + 1 >= s.n || s.p[i] != unit || s.p[i + 1] != '.')
        return false;
    *at = i + 2;
    *ret = value;
    return true;
}

int mig_compute_slices(struct str profile)
{
    size_t at = 0;
    int compute = 0, gpu = 0;
    bool has_compute = slices(profile, &at, 'c', &compute);
    if (!slices(profile, &at, 'g', &gpu))
        return 1;
    int value = has_compute ? compute : gpu;
    return value > 0 ? value : 1;
}

int mig_model_slices(struct str model)
{
    return memmem(model.p, model.n, "A30", 3) ? 4 : 7;
}
