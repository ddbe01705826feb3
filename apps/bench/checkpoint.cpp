// `troupe bench checkpoint`: what hashing adds to the files of a checkpoint. The same numbers are
// written alone, written and then read again to be hashed, and hashed while they are written, in
// turn; medians, in the system's temporary folder.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/temporary_folder.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/hashed_file.hpp"
#include "runtime/store/sha256.hpp"

#include <cstdint>
#include <vector>

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

// Seconds of one way to write the file.
struct WaysToWrite {
  std::vector<double> alone, then_hashed, while_written;
};

Result<void> write_plainly(const fs::path& path, const std::vector<std::uint64_t>& numbers) {
  TROUPE_TRY_ASSIGN(file, store::AppendFile::create(path));
  TROUPE_TRY(file.append({reinterpret_cast<const char*>(numbers.data()), 8 * numbers.size()}));
  return file.close();
}

Result<void> write_once_each(const fs::path& folder,
                             const std::vector<std::uint64_t>& numbers,
                             WaysToWrite& ways) {
  const fs::path path = folder / "numbers";
  Stopwatch watch;
  TROUPE_TRY(write_plainly(path, numbers));
  ways.alone.push_back(watch.lap());
  fs::remove(path);
  watch.lap();
  TROUPE_TRY(write_plainly(path, numbers));
  TROUPE_TRY_ASSIGN(read, store::sha256_file(path));
  ways.then_hashed.push_back(watch.lap());
  fs::remove(path);
  watch.lap();
  TROUPE_TRY_ASSIGN(file, store::HashedFile::create(path));
  TROUPE_TRY(file.append(numbers.data(), 8 * numbers.size()));
  TROUPE_TRY_ASSIGN(written, file.close());
  ways.while_written.push_back(watch.lap());
  fs::remove(path);
  if (written.sha256 == read.sha256) return {};
  return fail(ErrorCode::kInternal, "the two ways have different digests");
}

}  // namespace

Result<void> bench_checkpoint(cli::Words words) {
  std::int64_t megabytes = 512;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags("troupe bench checkpoint: hashing of written files, medians of 3",
                                {{"--mb", &megabytes, "size of the file", false, 1, 65536},
                                 {"--json", &as_json, "one JSON line"}},
                                words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(folder, TemporaryFolder::make("troupe-checkpoint"));
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(megabytes) << 17);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = i * 0x9e3779b97f4a7c15u;
  WaysToWrite ways, warm;
  TROUPE_TRY(write_once_each(folder.path(), numbers, warm));
  for (int i = 0; i < kRepetitions; ++i)
    TROUPE_TRY(write_once_each(folder.path(), numbers, ways));
  const double alone = median(ways.alone), then_hashed = median(ways.then_hashed);
  const double while_written = median(ways.while_written);
  print_figures({{"bench", "checkpoint"},
                 {"processor", cli::processor_name()},
                 {"megabytes", megabytes},
                 {"write_s", alone},
                 {"write_then_hash_s", then_hashed},
                 {"hash_while_writing_s", while_written},
                 {"share_of_before", while_written / then_hashed}},
                as_json);
  return {};
}

}  // namespace troupe::bench
