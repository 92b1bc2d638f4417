// Writes a KeyedStore, and tells a ledger of each write: keyed_writer FOLDER LEDGER.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>

#include "storage/dataset/dataset.h"
#include "tests/storage/power/keyed_values.h"

using namespace batchwright;
using namespace batchwright::test;

int main(int count, char** words) {
  if (count != 3) return 2;
  const auto store = KeyedStore::open("store", words[1], kKeyedTables, true);
  std::ofstream ledger(words[2]);
  for (std::uint64_t i = 1; store && i <= kKeyedWrites; ++i) {
    const auto written = (*store)->write([i](KeyedStore::Batch& batch) {
      const std::string value = keyed_value(i);
      std::memcpy(batch.reserve(1, i, value.size()).data(), value.data(), value.size());
      if (i > kKeyedKept) batch.erase(1, i - kKeyedKept);
      std::memcpy(batch.reserve(0, 0, sizeof i).data(), &i, sizeof i);
    });
    if (!written) return 1;
    ledger << i << std::endl;
  }
  return store ? 0 : 1;
}
