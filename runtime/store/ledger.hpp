// The data role's append-only record of tickets issued, delivered and consumed. One line a record:
// CRC-32C of the rest in 8 hexadecimal digits, the step that the record belongs to, and its text.
// A tail without a newline (a crash in the middle of a write) is cut off on opening; a whole line
// that does not fit its checksum is an error, because a record that was acknowledged would be lost.
// Owned by the data role; one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/append_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::store {

struct LedgerRecord {
  std::uint64_t step = 0;  // 1 for the first update
  std::string text;        // no newline
  friend bool operator==(const LedgerRecord&, const LedgerRecord&) = default;
};

class Ledger {
 public:
  // Reads what is there and cuts a torn tail. Error kData: a damaged record.
  static core::Result<Ledger> open(const std::filesystem::path& path);

  // The records found at opening, in file order. Appended records are not kept in memory.
  const std::vector<LedgerRecord>& records() const { return records_; }
  std::uint64_t cut_bytes() const { return cut_bytes_; }  // of the torn tail, 0 = none

  // Appends a record a text, all or none. Error kInvalidArgument: a newline in a text. `sync` puts
  // what was appended on disk.
  core::Result<void> append(std::uint64_t step, const std::vector<std::string>& texts);
  core::Result<void> sync() { return file_.sync(); }

 private:
  Ledger(AppendFile file, std::vector<LedgerRecord> records, std::uint64_t cut_bytes)
      : file_(std::move(file)), records_(std::move(records)), cut_bytes_(cut_bytes) {}
  AppendFile file_;
  std::vector<LedgerRecord> records_;
  std::uint64_t cut_bytes_;
};

// Reads the records without changing the file, so the run may be in progress; skips a torn tail.
// Error kData as for `open`.
core::Result<std::vector<LedgerRecord>> read_ledger(const std::filesystem::path& path);

// Drops the records of steps after `step` (all without one), for a run that goes on from a
// checkpoint. The file is replaced in one step. Error kData as for `open`.
core::Result<void> cut_ledger(const std::filesystem::path& path, std::optional<std::uint64_t> step);

}  // namespace troupe::store
