/* The demo's text: all families of a span, and how many samples that is. */
#include "cmd/demo_text.h"

#include <string.h>

#include "cmd/demo_writer.h"

#define SERIES_OF_GPU 10     /* families of a whole GPU */
#define SERIES_OF_BOARD 5    /* of a split one */
#define SERIES_OF_INSTANCE 6 /* of each of its instances */

enum err demo_text_write(const struct demo_fleet *fleet, struct span kube, struct span gpu, int fd,
                         struct error *err)
{
    struct demo_writer w;
    demo_writer_init(&w, fleet, fd);
    w.kube = (struct span){kube.from, kube.to + 1}; /* the caller's spans have their end in */
    w.gpu = (struct span){gpu.from, gpu.to + 1};
    demo_write_gpus(&w);
    demo_write_kube(&w);
    demo_write_serving(&w);
    demo_put_end(&w);
    int failed = w.error;
    demo_writer_release(&w);
    return failed ? error_set(err, ERR_IO, "writing the simulated fleet: %s", strerror(failed))
                  : ERR_OK;
}

double demo_text_samples_an_hour(const struct demo_fleet *fleet)
{
    double series = 0;
    for (size_t i = 0; i < fleet->nodes_n; i++) {
        const struct demo_node *node = &fleet->nodes[i];
        for (size_t k = 0; k < node->devices_n; k++) {
            const struct demo_device *device = &node->devices[k];
            bool split = device->slots[0].profile != NULL;
            series += split ? SERIES_OF_BOARD + SERIES_OF_INSTANCE * (double)device->slots_n
                            : SERIES_OF_GPU;
        }
    }
    return series * (double)HOUR_MS / (double)fleet->options.step_ms;
}
