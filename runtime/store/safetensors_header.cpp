#include "runtime/store/safetensors_header.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/store/limits.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace troupe::store {
namespace {

using nlohmann::json;

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<DtypeRow, 15> kDtypes = {{
    {Dtype::kBool, "BOOL", 1},
    {Dtype::kU8, "U8", 1},
    {Dtype::kI8, "I8", 1},
    {Dtype::kF8E5M2, "F8_E5M2", 1},
    {Dtype::kF8E4M3, "F8_E4M3", 1},
    {Dtype::kU16, "U16", 2},
    {Dtype::kI16, "I16", 2},
    {Dtype::kF16, "F16", 2},
    {Dtype::kBf16, "BF16", 2},
    {Dtype::kU32, "U32", 4},
    {Dtype::kI32, "I32", 4},
    {Dtype::kF32, "F32", 4},
    {Dtype::kU64, "U64", 8},
    {Dtype::kI64, "I64", 8},
    {Dtype::kF64, "F64", 8},
}};

const DtypeRow& row_of(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

core::Failure bad(std::string why, std::string_view advice = {}) {
  return core::fail(ErrorCode::kData, std::move(why), advice);
}
core::Failure bad_tensor(const std::string& name,
                         const std::string& why,
                         std::string_view advice = {}) {
  return bad("tensor " + name + ": " + why, advice);
}

// The header's own names are those of the tensors and `__metadata__`. A normal header is three
// levels deep, but its entries may have more fields than the format names, nested deeper.
constexpr parse::JsonBounds kBounds{.depth_max = 64,
                                    .names_max = limits::kSafetensorsTensors_max + 1,
                                    .repeats = parse::Repeats::kRefused};

Result<json> parse_json(std::string_view text) {
  auto header = parse::bounded_json<json>(text, kBounds);
  if (!header) return bad("its header " + header.error().message);
  if (!header->is_object()) return bad("its header is not a JSON object");
  return header;
}

Result<std::vector<std::int64_t>> parse_shape(const std::string& name, const json& list) {
  if (!list.is_array()) return bad_tensor(name, "`shape` is not a list");
  if (list.size() > limits::kSafetensorsRank_max) {
    return bad_tensor(name, std::to_string(list.size()) + " dimensions",
                      "the limit is " + std::to_string(limits::kSafetensorsRank_max));
  }
  std::vector<std::int64_t> shape;
  for (const json& item : list) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > kMax)
      return bad_tensor(name, "a dimension is not a whole number of at least 0");
    shape.push_back(item.get<std::int64_t>());
  }
  return shape;
}

Result<TensorInfo> parse_tensor(const std::string& name,
                                const json& entry,
                                std::uint64_t data_bytes) {
  if (!entry.is_object()) return bad_tensor(name, "its entry is not an object");
  const auto dtype = entry.find("dtype");
  const auto shape = entry.find("shape");
  const auto offsets = entry.find("data_offsets");
  if (dtype == entry.end() || shape == entry.end() || offsets == entry.end())
    return bad_tensor(name, "needs `dtype`, `shape` and `data_offsets`");
  if (!dtype->is_string()) return bad_tensor(name, "`dtype` is not a string");
  const auto known = dtype_named(dtype->get_ref<const std::string&>());
  if (!known)
    return bad_tensor(name, "unknown dtype `" + dtype->get_ref<const std::string&>() + "`");
  TensorInfo info;
  info.name = name;
  info.dtype = *known;
  TROUPE_TRY_SET(info.shape, parse_shape(name, *shape));
  std::uint64_t bytes = 0;
  if (!checked_size(info.shape, info.dtype, info.count, bytes))
    return bad_tensor(name, "its shape overflows");
  if (!offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned()) {
    return bad_tensor(name, "`data_offsets` is not a pair of whole numbers");
  }
  info.begin = (*offsets)[0].get<std::uint64_t>();
  info.end = (*offsets)[1].get<std::uint64_t>();
  if (info.begin > info.end) return bad_tensor(name, "its bytes end before they begin");
  if (info.end > data_bytes) {
    return bad_tensor(name, "truncated: its bytes end at " + std::to_string(info.end) +
                                ", the file has " + std::to_string(data_bytes) +
                                " after the header");
  }
  if (info.end - info.begin != bytes) {
    return bad_tensor(name, "its shape needs " + std::to_string(bytes) +
                                " bytes, its offsets give " +
                                std::to_string(info.end - info.begin));
  }
  return info;
}

// Checks that the tensors, ordered by offset, cover the data without gap or overlap.
Result<void> check_cover(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes) {
  std::uint64_t expected = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin < expected) return bad_tensor(tensor.name, "overlaps another tensor");
    if (tensor.begin > expected) return bad_tensor(tensor.name, "leaves a gap before it");
    expected = tensor.end;
  }
  if (expected != data_bytes) {
    return bad("the file has " + std::to_string(data_bytes - expected) +
               " bytes that belong to no tensor");
  }
  return {};
}

Result<void> parse_metadata(const json& entry, std::map<std::string, std::string>& metadata) {
  if (entry.is_null()) return {};
  if (!entry.is_object()) return bad("`__metadata__` is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return bad("`__metadata__`." + key + " is not a string");
    metadata.emplace(key, value.get<std::string>());
  }
  return {};
}

}  // namespace

std::string_view dtype_name(Dtype dtype) noexcept {
  return row_of(dtype).name;
}
std::uint64_t dtype_bytes(Dtype dtype) noexcept {
  return row_of(dtype).bytes;
}

bool checked_size(const std::vector<std::int64_t>& shape,
                  Dtype dtype,
                  std::int64_t& count,
                  std::uint64_t& bytes) {
  std::int64_t product = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(product, dimension, &product)) return false;
  }
  count = product;
  return !__builtin_mul_overflow(static_cast<std::uint64_t>(product), dtype_bytes(dtype), &bytes);
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                   std::uint64_t data_bytes) {
  TROUPE_TRY_ASSIGN(header, parse_json(text));
  SafetensorsHeader result;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      TROUPE_TRY(parse_metadata(entry, result.metadata));
      continue;
    }
    TROUPE_TRY_ASSIGN(info, parse_tensor(name, entry, data_bytes));
    result.tensors.push_back(std::move(info));
  }
  std::sort(result.tensors.begin(), result.tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  TROUPE_TRY(check_cover(result.tensors, data_bytes));
  return result;
}

std::string format_safetensors_header(std::span<const TensorInfo> tensors,
                                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const TensorInfo& tensor : tensors) {
    header[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace troupe::store
