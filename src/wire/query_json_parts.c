#include "wire/query_json_parts.h"

enum part query_part_of(enum part container, bool object, struct str key)
{
    static const struct {
        enum part container;
        const char *key; /* "" in a list, "*" any */
        enum part part;
    } shape[] = {
        {PART_ANSWER, "status", PART_STATUS},
        {PART_ANSWER, "data", PART_DATA},
        {PART_ANSWER, "error", PART_ERROR},
        {PART_ANSWER, "errorType", PART_ERROR_TYPE},
        {PART_ANSWER, "warnings", PART_WARNINGS},
        {PART_ANSWER, "infos", PART_INFOS},
        {PART_WARNINGS, "", PART_WARNING},
        {PART_INFOS, "", PART_INFO},
        {PART_DATA, "result", PART_RESULT},
        {PART_DATA, "", PART_DATA_ITEM},
        {PART_DATA_ITEM, "*", PART_LABEL},
        {PART_RESULT, "", PART_SERIES},
        {PART_SERIES, "metric", PART_METRIC},
        {PART_SERIES, "values", PART_VALUES},
        {PART_SERIES, "value", PART_PAIR},
        {PART_SERIES, "histograms", PART_HISTOGRAMS},
        {PART_SERIES, "histogram", PART_HISTOGRAM},
        {PART_METRIC, "*", PART_LABEL},
        {PART_VALUES, "", PART_PAIR},
        {PART_PAIR, "", PART_PAIR_ITEM},
        {PART_HISTOGRAMS, "", PART_HISTOGRAM},
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        const char *k = shape[i].key;
        if (shape[i].container == container && object == (*k != 0) &&
            (!object || *k == '*' || str_eq(key, str_of(k))))
            return shape[i].part;
    }
    return PART_SKIP;
}

bool query_part_opens(enum part part, bool object)
{
    switch (part) {
    case PART_DATA:
        return true;
    case PART_ANSWER:
    case PART_DATA_ITEM:
    case PART_SERIES:
    case PART_METRIC:
        return object;
    case PART_RESULT:
    case PART_VALUES:
    case PART_PAIR:
    case PART_WARNINGS:
    case PART_INFOS:
    case PART_HISTOGRAMS:
        return !object;
    default:
        return false;
    }
}
