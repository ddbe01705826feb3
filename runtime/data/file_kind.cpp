#include "runtime/data/file_kind.hpp"

#include <fstream>

namespace troupe::data {
namespace {

using namespace std::string_view_literals;

struct Ending {
  std::string_view text;
  RowsKind rows;
};
constexpr Ending kEndings[] = {
    {".jsonl", RowsKind::kLines},       {".json", RowsKind::kList},
    {".csv", RowsKind::kCsv},           {".parquet", RowsKind::kParquet},
    {".feather", RowsKind::kArrowFile}, {".arrow", RowsKind::kArrowStream},
};

const Ending* ending_of(std::string_view name) {
  for (const Ending& one : kEndings) {
    if (name.ends_with(one.text)) return &one;
  }
  return nullptr;
}

Packing packing_of(std::string_view name) {
  if (name.ends_with(".gz")) return Packing::kGzip;
  return name.ends_with(".zst") ? Packing::kZstd : Packing::kNone;
}

std::string_view unpacked_name(std::string_view name) {
  return packing_of(name) == Packing::kNone ? name : name.substr(0, name.rfind('.'));
}

}  // namespace

bool is_table(RowsKind kind) {
  return kind == RowsKind::kParquet || kind == RowsKind::kArrowFile ||
         kind == RowsKind::kArrowStream;
}

FileKind kind_of_name(std::string_view name) {
  const Ending* const ending = ending_of(unpacked_name(name));
  return {ending == nullptr ? RowsKind::kLines : ending->rows, packing_of(name)};
}

FileKind kind_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  char head[8] = {};
  in.read(head, sizeof head);
  const std::string_view begin(head, static_cast<std::size_t>(in.gcount()));
  if (begin.starts_with("PAR1"sv) || begin.starts_with("PARE"sv))
    return {RowsKind::kParquet, Packing::kNone};
  if (begin.starts_with("ARROW1"sv)) return {RowsKind::kArrowFile, Packing::kNone};
  if (begin.starts_with("\xFF\xFF\xFF\xFF"sv)) return {RowsKind::kArrowStream, Packing::kNone};
  FileKind kind = kind_of_name(file.string());
  if (begin.starts_with("\x1F\x8B"sv)) kind.packing = Packing::kGzip;
  if (begin.starts_with("\x28\xB5\x2F\xFD"sv)) kind.packing = Packing::kZstd;
  return kind;
}

bool ends_as_rows(std::string_view name) {
  const Ending* const ending = ending_of(unpacked_name(name));
  return ending != nullptr && (packing_of(name) == Packing::kNone || !is_table(ending->rows));
}

}  // namespace troupe::data
