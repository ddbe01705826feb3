#include "runtime/store/ledger.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <charconv>
#include <utility>

namespace troupe::store {
namespace {

std::string line_of(std::uint64_t step, std::string_view text) {
  std::string body = std::to_string(step) + " ";
  body += text;
  return core::printed("%08x ", core::text_crc32c(body)) + body + "\n";
}

struct Contents {
  std::vector<LedgerRecord> records;
  std::string text;              // the whole file
  std::uint64_t good_bytes = 0;  // length of the whole lines; a torn tail may follow
};

core::Result<Contents> read(const std::filesystem::path& path) {
  Contents out;
  TROUPE_TRY_SET(out.text, read_all(path));
  const std::string_view text = out.text;
  for (auto newline = text.find('\n'); newline != text.npos;
       newline = text.find('\n', out.good_bytes)) {
    const std::string_view line = text.substr(out.good_bytes);
    auto record = ledger_record(line.substr(0, newline - out.good_bytes));
    if (!record) {
      return core::fail(
          core::ErrorCode::kData,
          path.string() + ":" + std::to_string(out.records.size() + 1) + ": damaged record",
          "restore the run folder from a copy, or start anew with --resume off");
    }
    out.records.push_back(std::move(*record));
    out.good_bytes = newline + 1;
  }
  return out;
}

}  // namespace

std::optional<LedgerRecord> ledger_record(std::string_view line) {
  if (line.size() < 11 || line[8] != ' ') return std::nullopt;
  std::uint32_t crc = 0;
  const auto crc_end = std::from_chars(line.data(), line.data() + 8, crc, 16);
  const std::string_view body = line.substr(9);
  if (crc_end.ec != std::errc{} || crc_end.ptr != line.data() + 8 ||
      crc != core::text_crc32c(body)) {
    return std::nullopt;
  }
  LedgerRecord record;
  const auto end = std::from_chars(body.data(), body.data() + body.size(), record.step);
  const auto digits = static_cast<std::size_t>(end.ptr - body.data());
  if (end.ec != std::errc{} || digits == body.size() || body[digits] != ' ') return std::nullopt;
  record.text = body.substr(digits + 1);
  return record;
}

core::Result<Ledger> Ledger::open(const std::filesystem::path& path) {
  TROUPE_TRY_ASSIGN(contents, read(path));
  const std::uint64_t torn = contents.text.size() - contents.good_bytes;
  if (torn > 0) TROUPE_TRY(cut_file(path, contents.good_bytes));
  TROUPE_TRY_ASSIGN(file, KeptLines::open(path, &step_of_record));
  return Ledger(std::move(file), std::move(contents.records), torn);
}

core::Result<void> Ledger::append(std::uint64_t step, const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) {
    if (text.find('\n') != text.npos)
      return core::fail(core::ErrorCode::kInvalidArgument, "a ledger record has a newline");
    lines += line_of(step, text);
  }
  return file_.append(lines);
}

core::Result<std::vector<LedgerRecord>> read_ledger(const std::filesystem::path& path) {
  TROUPE_TRY_ASSIGN(contents, read(path));
  return std::move(contents.records);
}

core::Result<void> cut_ledger(const std::filesystem::path& path,
                              std::optional<std::uint64_t> step) {
  TROUPE_TRY_ASSIGN(contents, read(path));
  std::string kept;
  for (const LedgerRecord& record : contents.records) {
    if (step && record.step <= *step) kept += line_of(record.step, record.text);
  }
  if (kept == contents.text) return {};
  return replace_file(path, kept);
}

}  // namespace troupe::store
