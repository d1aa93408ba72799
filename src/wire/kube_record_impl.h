/* Field numbers of a record; those of objects stand in kube_record.c, a function each. Seen by
 * src/wire/kube_record*.c only. */
#ifndef GPUTALLY_WIRE_KUBE_RECORD_IMPL_H
#define GPUTALLY_WIRE_KUBE_RECORD_IMPL_H

#include "wire/kube_record.h"
#include "wire/protobuf.h"

enum record_field {
    R_VERSION = 1,
    R_ACT,
    R_KIND,
    R_T,
    R_CLUSTER,
    R_FIRST,
    R_LACKED,
    R_OBJECT,
    R_SNAPSHOT,
    R_SINCE,
    R_LAST,
};

#endif
