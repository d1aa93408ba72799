/* Devices built from strips: one sample of many rows, layouts, places, what is lost, energy. */
#include "fleet/facts.h"
#include "fleet_fixture.h"
#include "ledger/accrue.h"
#include "ledger/plan.h"
#include "ledger/review.h"

#define H "UUID=GPU-a,gpu=0,Hostname=n1"

struct built {
    struct fleet fleet;
    struct facts *facts;
    struct devices devices;
};

static void build(struct built *built)
{
    built->facts = facts_new(built->fleet.intake, (struct span){T0, T0 + HOUR_MS});
    assert_int_equal(strips_review(built->fleet.intake, built->facts, T0 + HOUR_MS, NULL), ERR_OK);
    struct plan plan;
    plan_make(&plan, built->facts, built->fleet.intake);
    assert_int_equal(plan.groups_n, 1);
    plan_devices(&plan, &plan.groups[0], &built->devices);
    plan_release(&plan);
    for (size_t i = 0; i < built->devices.n; i++) {
        struct device *device = built->devices.at[i];
        for (size_t k = 0; k < device->strips_n; k++)
            assert_int_equal(strip_fetch(device->strips[k], NULL), ERR_OK);
        device_build(device, built->facts);
    }
}

static void release(struct built *built)
{
    devices_release(&built->devices);
    facts_free(built->facts);
    fleet_close(&built->fleet);
}

static const struct device *device_of(const struct built *built, const char *uuid)
{
    for (size_t i = 0; i < built->devices.n; i++)
        if (strcmp(fleet_text(&built->fleet, built->devices.at[i]->uuid), uuid) == 0)
            return built->devices.at[i];
    fail_msg("no device %s", uuid);
    return NULL;
}

/* The value of a signal in the piece that holds the minute. */
static int64_t at_minute(const struct timeline *line, enum signal signal, int minute)
{
    size_t i = timeline_piece_after(line, T0 + minute * MINUTE_MS);
    if (i == line->pieces_n || line->from[i] > T0 + minute * MINUTE_MS || !line->piece[signal])
        return SIGNAL_ABSENT;
    return line->piece[signal][i];
}

static const struct named_set *named_at(const struct device *device, int minute)
{
    const struct label_run *run =
        timeline_named_at(&device->own, device->own.t, T0 + minute * MINUTE_MS);
    return run ? run->set : NULL;
}

/* ------------------------------------------------------------------ identity */

static void a_uuid_without_its_prefix_and_one_with_are_one_device(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    fleet_samples(&b.fleet, "nvidia_smi_utilization_gpu_ratio", "uuid=a-1,instance=h:9835", 0, 5,
                  1);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", "UUID=GPU-a-1,gpu=0,Hostname=h", 0, 5, 100);
    build(&b);
    assert_int_equal(b.devices.n, 1);
    release(&b);
}

static void equal_uuids_of_two_clusters_are_two_devices(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", H ",cluster=x", 0, 5, 100);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", H ",cluster=y", 0, 5, 100);
    build(&b);
    assert_int_equal(b.devices.n, 2);
    release(&b);
}

static void a_gpu_without_a_uuid_is_told_by_host_and_address(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", "Hostname=h,gpu=0,pci_bus_id=00:1", 0, 5, 1);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", "Hostname=h,gpu=7,pci_bus_id=00:1", 5, 9, 1);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", "Hostname=h,gpu=1", 0, 5, 1);
    build(&b);
    assert_int_equal(b.devices.n, 2);
    device_of(&b, "h/00:1");
    device_of(&b, "h/1");
    release(&b);
}

/* ------------------------------------------------------------------ rows of one stamp */

static void a_signal_comes_from_the_row_that_names_no_pod_else_the_largest(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    const char *util = "DCGM_FI_DEV_GPU_UTIL", *sm = "DCGM_FI_PROF_SM_ACTIVE";
    fleet_samples(&b.fleet, util, H ",pod=p,namespace=ns,container=c", 0, 5, 30);
    fleet_samples(&b.fleet, util, H ",pod=q,namespace=ns,container=c", 0, 5, 40);
    fleet_samples(&b.fleet, util, H, 0, 5, 10);
    fleet_samples(&b.fleet, sm, H ",pod=p,namespace=ns,container=c", 0, 5, 0.3);
    fleet_samples(&b.fleet, sm, H ",pod=q,namespace=ns,container=c", 0, 5, 0.4);
    build(&b);
    const struct device *device = device_of(&b, "GPU-a");
    assert_int_equal(at_minute(&device->own, SIGNAL_UTIL, 3), 100000000);
    assert_int_equal(at_minute(&device->own, SIGNAL_SM, 3), 400000000);
    assert_int_equal(named_at(device, 3)->n, 2);
    release(&b);
}

static void holders_are_the_union_in_order_of_their_names(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    const char *util = "DCGM_FI_DEV_GPU_UTIL";
    fleet_samples(&b.fleet, util, H ",pod=z,namespace=b,container=c,vgpu=0", 0, 5, 30);
    fleet_samples(&b.fleet, util, H ",pod=z,namespace=a,container=d,vgpu=1", 0, 5, 30);
    fleet_samples(&b.fleet, util, H ",pod=z,namespace=a,container=c,vgpu=2", 0, 5, 30);
    fleet_samples(&b.fleet, util, H ",pod=z,namespace=a,container=c,vgpu=3", 0, 5, 30);
    fleet_samples(&b.fleet, util, H ",pod=z,namespace=a,container=c,vgpu=3,replica=2", 0, 5, 30);
    build(&b);
    const struct named_set *set = named_at(device_of(&b, "GPU-a"), 3);
    assert_int_equal(set->n, 3);
    assert_string_equal(fleet_text(&b.fleet, set->at[0].namespace), "a");
    assert_string_equal(fleet_text(&b.fleet, set->at[0].container), "c");
    assert_int_equal(set->at[0].replicas, 2); /* 2 and 3, the latter exported twice */
    assert_string_equal(fleet_text(&b.fleet, set->at[1].container), "d");
    assert_string_equal(fleet_text(&b.fleet, set->at[2].namespace), "b");
    release(&b);
}

static void strips_that_follow_one_another_are_one_line(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    char labels[100];
    for (int pod = 19; pod >= 0; pod--) { /* named in the wrong order */
        snprintf(labels, sizeof labels, H ",namespace=ns,container=c,pod=p%02d", pod);
        fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", labels, pod, pod + 1, pod);
    }
    build(&b);
    const struct device *device = device_of(&b, "GPU-a");
    assert_int_equal(device->own.n, 40);
    for (int minute = 0; minute < 20; minute++) {
        assert_int_equal(at_minute(&device->own, SIGNAL_UTIL, minute), minute * 10000000);
        snprintf(labels, sizeof labels, "p%02d", minute);
        assert_string_equal(fleet_text(&b.fleet, named_at(device, minute)->at[0].pod), labels);
    }
    release(&b);
}

/* Strips of random pods that overlap, against the rows of each stamp put together by hand. */
static void overlapping_strips_are_joined_stamp_by_stamp(void **state)
{
    (void)state;
    struct random random = random_new();
    enum { PODS = 10, MINUTES = 40 };
    for (int round = 0; round < 20; round++) {
        struct built b;
        bool there[PODS][MINUTES];
        fleet_open(&b.fleet, GPU_PRICE);
        for (int pod = 0; pod < PODS; pod++) {
            int from = (int)random_below(&random, MINUTES), n = (int)random_below(&random, MINUTES);
            for (int m = 0; m < MINUTES; m++) {
                there[pod][m] = m >= from && m < from + n && random_below(&random, 6);
                char labels[100];
                snprintf(labels, sizeof labels, H ",namespace=ns,container=c,pod=p%d", pod);
                if (there[pod][m])
                    fleet_sample(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", labels, (m + 1) * MINUTE_MS,
                                 pod + m);
            }
        }
        build(&b);
        for (int m = 0; m < MINUTES && b.devices.n; m++) {
            const struct device *device = device_of(&b, "GPU-a");
            int most = -1;
            size_t n = 0;
            for (int pod = 0; pod < PODS; pod++)
                if (there[pod][m]) {
                    most = pod + m;
                    n++;
                }
            if (!n)
                continue;
            time_ms stamp = T0 + (m + 1) * MINUTE_MS;
            size_t piece = timeline_piece_after(&device->own, stamp - 1);
            assert_int_equal(device->own.to[piece], stamp);
            assert_int_equal(device->own.piece[SIGNAL_UTIL][piece], most * 10000000);
            const struct label_run *run = timeline_named_at(&device->own, device->own.t, stamp - 1);
            assert_int_equal(run->set->n, n);
        }
        release(&b);
    }
}

/* ------------------------------------------------------------------ layouts and places */

static void the_last_layout_seen_holds_until_a_sample_shows_another(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    const char *gr = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
    fleet_samples(&b.fleet, gr, H ",GPU_I_ID=1,GPU_I_PROFILE=3g.40gb", 0, 10, 0.5);
    fleet_samples(&b.fleet, gr, H ",GPU_I_ID=13,GPU_I_PROFILE=1g.10gb", 20, 30, 0.5);
    fleet_samples(&b.fleet, gr, H ",GPU_I_ID=9,GPU_I_PROFILE=1g.10gb", 20, 30, 0.5);
    fleet_samples(&b.fleet, gr, H, 40, 50, 0.5);
    build(&b);
    const struct device *device = device_of(&b, "GPU-a");
    const struct layout *layout = device_layout_at(device, T0 + 15 * MINUTE_MS);
    assert_int_equal(layout->n, 1);
    assert_int_equal(device_layout_at(device, T0 - 15 * MINUTE_MS)->n, 1); /* before, too */
    layout = device_layout_at(device, T0 + 35 * MINUTE_MS);
    assert_int_equal(layout->n, 2);
    assert_string_equal(fleet_text(&b.fleet, layout->parts[0].id), "9"); /* shorter first */
    assert_string_equal(fleet_text(&b.fleet, layout->parts[1].id), "13");
    assert_null(device_layout_at(device, T0 + 45 * MINUTE_MS));
    release(&b);
}

static void more_instances_than_a_device_can_have_are_left_out(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    for (int i = 0; i < 300; i++) {
        char labels[100];
        snprintf(labels, sizeof labels, H ",GPU_I_ID=%d,GPU_I_PROFILE=1g.10gb", i);
        fleet_samples(&b.fleet, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", labels, 0, 2, 0.5);
    }
    build(&b);
    const struct device *device = device_of(&b, "GPU-a");
    assert_int_equal(device->instances_n, 64);
    assert_int_equal(device_layout_at(device, T0)->n, 16);
    assert_int_equal(device->rejected, 236 * 4);
    release(&b);
}

static void index_and_model_may_change_where_the_device_stays(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", "UUID=GPU-a,gpu=0,Hostname=n1", 0, 5, 1);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_GPU_UTIL", "UUID=GPU-a,gpu=3,Hostname=n1,modelName=M", 5,
                  10, 1);
    build(&b);
    const struct device *device = device_of(&b, "GPU-a");
    assert_int_equal(device->places_n, 2);
    assert_int_equal(device->places[1].index, 3);
    assert_string_equal(fleet_text(&b.fleet, device->model), "M");
    release(&b);
}

/* ------------------------------------------------------------------ lost and energy */

static void a_loss_begins_with_what_its_first_sample_covers(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_XID_ERRORS", H, 0, 10, 0);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_XID_ERRORS", H, 10, 20, 79);
    fleet_samples(&b.fleet, "DCGM_FI_DEV_XID_ERRORS", H, 20, 30, 0);
    build(&b);
    const struct spans *lost = &device_of(&b, "GPU-a")->lost;
    assert_int_equal(lost->n, 1);
    assert_int_equal(lost->at[0].from, T0 + 10 * MINUTE_MS);
    assert_int_equal(lost->at[0].to, T0 + 20 * MINUTE_MS);
    release(&b);
}

static int64_t energy_in(const struct device *device, time_ms from, time_ms to)
{
    struct tally *tally = calloc(1, sizeof *tally);
    tally_energy(tally, device, (struct span){T0 + from, T0 + to}, FRAC_ONE, false);
    tally_finish(tally);
    int64_t mj = tally->row.energy_mj;
    tally_release(tally);
    free(tally);
    return mj;
}

static void a_counter_that_falls_gives_way_to_power(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    const char *counter = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"; /* mJ */
    fleet_samples(&b.fleet, "DCGM_FI_DEV_POWER_USAGE", H, 0, 5, 100);
    static const double mj[] = {5000000, 8000000, 11000000, 1000000, 4000000};
    for (int i = 0; i < 5; i++)
        fleet_sample(&b.fleet, counter, H, (i + 1) * MINUTE_MS, mj[i]);
    build(&b);
    const struct device *device = device_of(&b, "GPU-a");
    assert_int_equal(energy_in(device, MINUTE_MS, 3 * MINUTE_MS), 6000000);
    assert_int_equal(energy_in(device, 3 * MINUTE_MS, 4 * MINUTE_MS), 6000000); /* 100 W x 60 s */
    assert_int_equal(energy_in(device, 4 * MINUTE_MS, 5 * MINUTE_MS), 3000000);
    release(&b);
}

static void a_counter_that_jumps_does_not_overflow_a_row(void **state)
{
    (void)state;
    struct built b;
    fleet_open(&b.fleet, GPU_PRICE);
    for (int i = 0; i < 3000; i++)
        fleet_sample(&b.fleet, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", H, i * 1000,
                     i % 2 ? 9.1e15 : 0);
    build(&b);
    assert_int_equal(energy_in(device_of(&b, "GPU-a"), 0, HOUR_MS), INT64_C(1000000000000000));
    release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_uuid_without_its_prefix_and_one_with_are_one_device),
        cmocka_unit_test(equal_uuids_of_two_clusters_are_two_devices),
        cmocka_unit_test(a_gpu_without_a_uuid_is_told_by_host_and_address),
        cmocka_unit_test(a_signal_comes_from_the_row_that_names_no_pod_else_the_largest),
        cmocka_unit_test(holders_are_the_union_in_order_of_their_names),
        cmocka_unit_test(strips_that_follow_one_another_are_one_line),
        cmocka_unit_test(overlapping_strips_are_joined_stamp_by_stamp),
        cmocka_unit_test(the_last_layout_seen_holds_until_a_sample_shows_another),
        cmocka_unit_test(more_instances_than_a_device_can_have_are_left_out),
        cmocka_unit_test(index_and_model_may_change_where_the_device_stays),
        cmocka_unit_test(a_loss_begins_with_what_its_first_sample_covers),
        cmocka_unit_test(a_counter_that_falls_gives_way_to_power),
        cmocka_unit_test(a_counter_that_jumps_does_not_overflow_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
