/* The assembler takes the tables in with .incbin: no generated source, no copy, and the same with
 * gcc, clang and their sanitizers. CMake names the folder and makes this file depend on the tables.
 */
#include "fleet/data.h"

#include "util/error.h"

#define TABLE(name, path)                                                                          \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign 16\n"                                                                         \
            ".globl data_" #name "\n"                                                              \
            ".hidden data_" #name "\n"                                                             \
            "data_" #name ":\n"                                                                    \
            ".incbin \"" GPUTALLY_DATA_FOLDER "/" path "\"\n"                                      \
            ".globl data_" #name "_end\n"                                                          \
            ".hidden data_" #name "_end\n"                                                         \
            "data_" #name "_end:\n"                                                                \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char data_##name[], data_##name##_end[]

TABLE(gpus, "gpus.csv");
TABLE(mig_profiles, "mig_profiles.csv");
TABLE(sharing, "sharing.csv");
TABLE(prices, "prices.csv");
TABLE(cpu_prices, "cpu_prices.csv");

struct str data_file(struct str name)
{
    const struct {
        struct str name;
        const char *from, *to;
    } tables[] = {
        {STR("gpus.csv"), data_gpus, data_gpus_end},
        {STR("mig_profiles.csv"), data_mig_profiles, data_mig_profiles_end},
        {STR("sharing.csv"), data_sharing, data_sharing_end},
        {STR("prices.csv"), data_prices, data_prices_end},
        {STR("cpu_prices.csv"), data_cpu_prices, data_cpu_prices_end},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (str_eq(tables[i].name, name))
            return (struct str){tables[i].from, (size_t)(tables[i].to - tables[i].from)};
    return STR_NONE;
}

void data_rows(struct str name, void (*each)(const struct csv *row))
{
    struct csv csv;
    csv_init(&csv, data_file(name));
    bool some = csv_next(&csv);
    invariant(some);
    while (csv_next(&csv)) {
        invariant(!csv.broken && csv.scratch.n == 0); /* else the fields lie in scratch */
        each(&csv);
    }
    csv_release(&csv);
}
