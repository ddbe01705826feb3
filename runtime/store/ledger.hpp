// The append-only log ledger.log of a run folder: a record for each group that was trained on. A
// record is one line: the CRC-32C of the rest in 8 hexadecimal digits, the step, and a text.
// Opening the ledger removes an unfinished last line, which a crash in the middle of a write
// leaves. A whole line with a wrong checksum is an error, since dropping it would lose a committed
// record. A file that is removed or cut while it is written is made again (kept_lines.hpp).
// Used by one thread, that of the data role.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/kept_lines.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::store {

struct LedgerRecord {
  std::uint64_t step = 0;  // of the update that used the group; the first one is step 1
  std::string text;        // no newline
  friend bool operator==(const LedgerRecord&, const LedgerRecord&) = default;
};

// The record in a line of the file (without its newline); nullopt if the line is damaged.
std::optional<LedgerRecord> ledger_record(std::string_view line);

class Ledger {
 public:
  // Reads the records and removes an unfinished last line. Error kData: a damaged record.
  static core::Result<Ledger> open(const std::filesystem::path& path);

  // The records found at opening, in file order. Appended records are not kept in memory.
  const std::vector<LedgerRecord>& records() const { return records_; }
  std::uint64_t cut_bytes() const { return cut_bytes_; }  // that `open` removed, 0 = none

  // Makes the file again if it is not as it was written, and returns what to tell the user then.
  core::Result<std::optional<std::string>> mend() { return file_.mend(); }

  // Appends one record for each text: all of them or, after an error, none. Error kInvalidArgument:
  // a text with a newline. `sync` waits until the records are on disk.
  core::Result<void> append(std::uint64_t step, const std::vector<std::string>& texts);
  core::Result<void> sync() { return file_.sync(); }

 private:
  Ledger(KeptLines file, std::vector<LedgerRecord> records, std::uint64_t cut_bytes)
      : file_(std::move(file)), records_(std::move(records)), cut_bytes_(cut_bytes) {}
  KeptLines file_;
  std::vector<LedgerRecord> records_;
  std::uint64_t cut_bytes_;
};

// Reads the records without changing the file, so the run may be in progress. Skips an unfinished
// last line. Error kData as for `open`.
core::Result<std::vector<LedgerRecord>> read_ledger(const std::filesystem::path& path);

// Removes the records of steps after `step`, or all records if `step` is empty, before a run
// resumes from a checkpoint. Replaces the file atomically. Error kData as for `open`.
core::Result<void> cut_ledger(const std::filesystem::path& path, std::optional<std::uint64_t> step);

}  // namespace troupe::store
