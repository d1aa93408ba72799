#include "fleet/flags.h"

const char *const flag_words[FLAG_COUNT] = {
#define X(name, word, meaning) word,
    FLAG_TABLE(X)
#undef X
};

const char *const flag_meanings[FLAG_COUNT] = {
#define X(name, word, meaning) meaning,
    FLAG_TABLE(X)
#undef X
};
