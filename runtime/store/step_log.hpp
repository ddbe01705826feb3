// A log of binary records in one folder, with one file for each step: step_000012.log. Before each
// record stand its length and its CRC-32C, 4 bytes each, least byte first. Records are collected in
// memory and written in batches, so another thread than the one that adds them may write. A file
// ends at its first record that is incomplete or damaged; reading cuts off the rest. An empty
// record stands where something that was written before is missing: nothing after it counts.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/disk.hpp"
#include "runtime/store/kept_files.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::store {

// Appends the record with its frame to `out`.
void add_record(std::string& out, std::string_view record);

// The record with which `rest` begins, and takes it off `rest`; nullopt if that is incomplete,
// damaged, or nothing.
std::optional<std::string_view> next_record(std::string_view& rest);

class StepLog {
 public:
  // Framed records that are not on disk yet, by step.
  using Batch = std::map<std::uint64_t, std::string>;

  // `disk` outlives the log. The folder must be there when something is written.
  // `kept` (may be null) is told what is written, and knows what others have removed.
  StepLog(std::filesystem::path folder, Disk& disk, std::shared_ptr<KeptFiles> kept = nullptr)
      : folder_(std::move(folder)), disk_(disk), kept_(std::move(kept)) {}

  // One thread: adds a record to the batch that is being collected, and takes that batch.
  void add(std::uint64_t step, std::string_view record);
  bool empty() const noexcept { return collected_.empty(); }
  Batch take();
  // Puts back what a failed `write` left, before what was added meanwhile.
  void put_back(Batch batch);

  // Any one thread at a time: what follows touches only the disk.
  // Appends and syncs the batch by step, and removes from it what is on disk. Makes the folder if
  // it is gone. Errors: the disk's; a record that was appended but not synced stays in the batch,
  // so it may be in the file twice.
  core::Result<void> write(Batch& batch) const;
  // The steps that have a file, in order.
  core::Result<std::vector<std::uint64_t>> steps() const;
  struct Content {
    std::vector<std::string> records;
    std::uint64_t bytes = 0;      // of the records
    std::uint64_t cut_bytes = 0;  // of an incomplete or damaged end
  };
  core::Result<Content> read(std::uint64_t step) const;
  // Keeps only the first `bytes` bytes: what comes then follows on them.
  core::Result<void> cut(std::uint64_t step, std::uint64_t bytes) const;
  core::Result<void> remove(std::uint64_t step) const;
  // Removes the files of all steps up to and including this one.
  core::Result<void> remove_up_to(std::uint64_t step) const;
  core::Result<std::uint64_t> size_of(std::uint64_t step) const;  // bytes
  std::filesystem::path file_of(std::uint64_t step) const;

 private:
  std::filesystem::path folder_;
  Disk& disk_;
  std::shared_ptr<KeptFiles> kept_;
  Batch collected_;
};

}  // namespace troupe::store
