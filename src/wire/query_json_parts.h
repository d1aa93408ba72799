/* Inside of query_json: the shape of an answer, as the part that each value plays in it. */
#ifndef GPUTALLY_WIRE_QUERY_JSON_PARTS_H
#define GPUTALLY_WIRE_QUERY_JSON_PARTS_H

#include "util/str.h"

enum part {
    PART_SKIP,
    PART_ANSWER,
    PART_STATUS,
    PART_ERROR,
    PART_ERROR_TYPE,
    PART_WARNINGS,
    PART_WARNING,
    PART_INFOS,
    PART_INFO,
    PART_DATA,
    PART_DATA_ITEM,
    PART_RESULT,
    PART_SERIES, /* an element of the result */
    PART_METRIC,
    PART_LABEL,
    PART_VALUES,
    PART_PAIR,
    PART_PAIR_ITEM,
    PART_HISTOGRAMS,
    PART_HISTOGRAM,
};

/* The part of a value by its container's part and, in an object, its key; PART_SKIP for none. */
enum part query_part_of(enum part container, bool object, struct str key);

/* Is a value of this part a container, an object or a list? Another kind there plays no part. */
bool query_part_opens(enum part part, bool object);

#endif
