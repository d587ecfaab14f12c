// Integers in the byte orders of binlogs and of msgpack, read and written by shifts. Compilers turn little-endian reads of
// 2, 4 and 8 bytes, and all writes, into a single load or store.
#pragma once

#include <cstdint>

static inline uint32_t little_endian_32(const uint8_t* p) {
    return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t) p[3] << 24;
}

static inline uint64_t little_endian(const uint8_t* p, int size) {
    switch (size) {
        case 1: return p[0];
        case 2: return p[0] | p[1] << 8;
        case 3: return p[0] | p[1] << 8 | p[2] << 16;
        case 4: return little_endian_32(p);
        case 8: return little_endian_32(p) | (uint64_t) little_endian_32(p + 4) << 32;
    }
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint64_t) p[i] << (8 * i);
    return value;
}

static inline uint64_t big_endian(const uint8_t* p, int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | p[i];
    return value;
}

static inline char* put_big16(char* o, uint16_t v) {
    o[0] = v >> 8, o[1] = v;
    return o + 2;
}

static inline char* put_big32(char* o, uint32_t v) {
    o[0] = v >> 24, o[1] = v >> 16, o[2] = v >> 8, o[3] = v;
    return o + 4;
}

static inline char* put_big64(char* o, uint64_t v) { return put_big32(put_big32(o, v >> 32), v); }
