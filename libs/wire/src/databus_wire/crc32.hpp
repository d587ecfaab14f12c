// CRC-32 as zlib's, byte by byte: for keys, which are short.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

constexpr uint32_t CRC32_INITIAL = 0xFFFFFFFF;  // of no bytes; the checksum is the complement of the last value

constexpr std::array<uint32_t, 256> crc32_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? rest >> 1 ^ 0xEDB88320 : rest >> 1;
        table[byte] = rest;
    }
    return table;
}

inline uint32_t crc32_add(uint32_t crc, const uint8_t* data, size_t size) {
    static constexpr std::array<uint32_t, 256> table = crc32_table();
    for (size_t i = 0; i < size; ++i) crc = crc >> 8 ^ table[(crc ^ data[i]) & 0xFF];
    return crc;
}
