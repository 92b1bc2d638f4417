#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "formats/formats.h"

// Values of a spool, as they are read.

namespace batchwright {

/// A FlatBuffer of this kind, as plain values. Empty: the bytes are none.
template <class Table>
std::optional<typename Table::NativeTableType> unpack(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size());
  if (!verifier.VerifyBuffer<Table>(nullptr)) return {};
  typename Table::NativeTableType values;
  flatbuffers::GetRoot<Table>(data)->UnPackTo(&values);
  return values;
}

/// The same for a struct.
template <class Struct>
std::optional<Struct> unpack_struct(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Struct)) return {};
  Struct values;
  std::memcpy(&values, bytes.data(), sizeof values);
  return values;
}

/// The spool `name` is not as it was written.
Error damaged_spool(const std::string& name, const std::string& what);

}  // namespace batchwright
