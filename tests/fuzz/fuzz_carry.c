/* Any bytes as a carry: refused or taken, never a crash; and what was taken can be booked,
 * balances, and gives a carry that is taken in turn. */
#include "../lib/ledger_checks.h"
#include "ledger/carry.h"
#include "ledger/engine.h"

#define FROM INT64_C(1767225600000) /* 2026-01-01 */

static struct settings settings;
static struct prices *prices;
static struct owners *owners;

static void make_books(void)
{
    settings_defaults(&settings);
    prices = prices_new();
    struct price_rule rule = {.kind = PRICE_RULE_GPU,
                              .selector = {.any_capacity = true, .valid = {TIME_MIN, TIME_MAX}},
                              .amount = 3700000001,
                              .source = STR("test")};
    prices_add_rule(prices, &rule);
    prices_ready(prices);
    owners = owners_new_default();
}

static void check(void *context, const struct row_batch *batch)
{
    (void)context;
    check_batch(batch);
}

static bool book(struct str carry, struct span hours, struct strbuf *ret_carry)
{
    struct names *names = names_new();
    struct intake *intake = intake_new(&settings, names);
    struct error err;
    enum err code = carry_read(intake, carry, &err);
    invariant(code == ERR_OK || (code == ERR_PARSE && err.code == ERR_PARSE));
    if (code == ERR_OK) {
        struct engine_options options = {&settings, prices, owners, 1, NULL};
        invariant(engine_book(intake, hours, &options, check, NULL, ret_carry, &err) == ERR_OK);
    }
    intake_free(intake);
    names_free(names);
    return code == ERR_OK;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (!prices)
        make_books();
    struct strbuf next = {0};
    if (book((struct str){(const char *)data, size}, (struct span){FROM, FROM + HOUR_MS}, &next))
        invariant(book(strbuf_str(&next), (struct span){FROM + HOUR_MS, FROM + 2 * HOUR_MS}, NULL));
    strbuf_release(&next);
    return 0;
}
