/* Any bytes as a saved report: read or refused, never a crash; and what was read is compared with
 * itself, where nothing may have changed and every part adds up. */
#include "report/saved.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diff_side side;
    if (saved_report_read((struct str){(const char *)data, size}, "fuzz", &side, NULL) == ERR_OK) {
        struct diff *diff = diff_new(&side, &side);
        for (size_t i = 0; i < diff->rows_n; i++) {
            const struct diff_row *row = &diff->rows[i];
            invariant(!row->split || row->price + row->volume == row->b.cost - row->a.cost);
            invariant(!row->used_split || row->used_price + row->used_volume + row->efficiency ==
                                              row->b.used - row->a.used);
        }
        diff_free(diff);
    }
    diff_side_release(&side);
    return 0;
}
