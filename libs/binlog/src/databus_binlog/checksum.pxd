"""The checksum of events, CRC-32."""

from libc.stdint cimport uint8_t, uint32_t

cdef extern from "checksum.hpp" nogil:
    uint32_t crc32_of(const uint8_t* data, size_t size)
    uint32_t crc32_continued(uint32_t crc, const uint8_t* data, size_t size)  # `crc` is that of the preceding bytes

cdef enum:
    CRC32_RESIDUE = 0x2144DF1C  # the checksum of any bytes followed by their own checksum
