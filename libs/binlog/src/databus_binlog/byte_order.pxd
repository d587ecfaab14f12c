"""Integers in the byte orders of binlogs (mostly little-endian) and of msgpack (big-endian)."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "byte_order.hpp" nogil:
    # Read an integer of `size` bytes.
    uint64_t le "little_endian"(const uint8_t* p, int size)
    uint64_t be "big_endian"(const uint8_t* p, int size)
    # Write an integer; return the position after it.
    char* put_big16(char* o, uint16_t value)
    char* put_big32(char* o, uint32_t value)
    char* put_big64(char* o, uint64_t value)
