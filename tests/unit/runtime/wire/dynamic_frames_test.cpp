// Reflection over the envelope's schema.
#include "tests/unit/runtime/wire/dynamic_frames.hpp"

#include "runtime/core/check.hpp"
#include "tests/unit/runtime/wire/raw_frames.hpp"

#include <capnp/pretty-print.h>
#include <gtest/gtest.h>

#include <list>

namespace troupe::wire::testing {
namespace {

using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::DynamicValue;

std::uint64_t hash_of(const std::string& path) {  // FNV-1a
  std::uint64_t hash = 1469598103934665603ull;
  for (const char c : path)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

std::string spelled(const DynamicValue::Reader& value) {
  return kj::str(value).cStr();
}

class Filler {
 public:
  explicit Filler(std::vector<std::string>& lines) : lines_(lines) {}

  void fill(DynamicStruct::Builder builder, const std::string& path) {
    for (const auto field : builder.getSchema().getNonUnionFields())
      set(builder, field, path);
    const auto arms = builder.getSchema().getUnionFields();
    if (arms.size() > 0) set(builder, arms[arm_++ % arms.size()], path);
  }

  void set(DynamicStruct::Builder builder,
           capnp::StructSchema::Field field,
           const std::string& prefix) {
    const std::string path =
        (prefix.empty() ? "" : prefix + ".") + field.getProto().getName().cStr();
    const auto type = field.getType();
    if (type.isStruct()) {
      fill(builder.init(field).as<DynamicStruct>(), path);
    } else if (type.isList()) {
      fill_list(builder.init(field, 2).as<DynamicList>(), type.asList().getElementType(), path);
    } else {
      builder.set(field, scalar(type, path));
      lines_.push_back(path + " = " + spelled(builder.asReader().get(field)));
    }
  }

 private:
  void fill_list(DynamicList::Builder list, capnp::Type type, const std::string& path) {
    for (unsigned i = 0; i < list.size(); ++i) {
      const std::string place = path + "[" + std::to_string(i) + "]";
      if (type.isStruct()) {
        fill(list[i].as<DynamicStruct>(), place);
      } else {
        list.set(i, scalar(type, place));
        lines_.push_back(place + " = " + spelled(list.asReader()[i]));
      }
    }
  }

  DynamicValue::Reader scalar(capnp::Type type, const std::string& path) {
    const std::uint64_t hash = hash_of(path);
    switch (type.which()) {
      case capnp::schema::Type::BOOL:
        return true;
      case capnp::schema::Type::INT32:
        return static_cast<std::int32_t>(hash >> 33);
      case capnp::schema::Type::UINT32:
        return static_cast<std::uint32_t>(hash >> 32);
      case capnp::schema::Type::UINT64:
        return hash;
      case capnp::schema::Type::FLOAT32:
        return static_cast<float>(hash >> 44) / 64.0f;
      case capnp::schema::Type::FLOAT64:
        return static_cast<double>(hash >> 34) / -64.0;
      case capnp::schema::Type::ENUM: {
        const auto names = type.asEnum().getEnumerants();
        return capnp::DynamicEnum(names[static_cast<unsigned>(hash % names.size())]);
      }
      case capnp::schema::Type::TEXT:
        kept_.push_back("\u00e9 " + path);
        return capnp::Text::Reader(kept_.back().c_str(), kept_.back().size());
      case capnp::schema::Type::DATA: {
        kept_.emplace_back(reinterpret_cast<const char*>(&hash), 8);
        const auto& data = kept_.back();
        return capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(data.data()), data.size());
      }
      default:
        ADD_FAILURE() << path << ": a type that golden frames do not know yet";
        return DynamicValue::Reader();
    }
  }

  std::vector<std::string>& lines_;
  std::list<std::string> kept_;
  unsigned arm_ = 0;
};

}  // namespace

std::vector<std::string> envelope_arms() {
  std::vector<std::string> arms;
  for (const auto field : capnp::Schema::from<schema::Envelope>().getUnionFields()) {
    const std::string name = field.getProto().getName().cStr();
    if (name != "empty") arms.push_back(name);
  }
  return arms;
}

FilledFrame fill_arm(const std::string& arm) {
  std::vector<std::string> lines;
  Outgoing outgoing(some_header());
  DynamicStruct::Builder root = outgoing.envelope();
  Filler(lines).set(root, root.getSchema().getFieldByName(arm), "");
  auto frame = outgoing.finish();
  TROUPE_CHECK(frame.has_value(), "a golden frame fits a frame");
  return {std::move(frame).value(), std::move(lines)};
}

std::string value_at(DynamicStruct::Reader root, const std::string& path) {
  DynamicValue::Reader value = root;
  for (std::size_t at = 0; at < path.size();) {
    if (path[at] == '[') {
      const std::size_t close = path.find(']', at);
      const auto index = static_cast<unsigned>(std::stoul(path.substr(at + 1, close - at - 1)));
      const auto list = value.as<DynamicList>();
      if (index >= list.size()) return "";
      value = list[index];
      at = close + 1;
    } else {
      at += path[at] == '.' ? 1 : 0;
      const std::size_t end = std::min(path.find_first_of(".[", at), path.size());
      const auto reader = value.as<DynamicStruct>();
      const std::string name = path.substr(at, end - at);
      const auto field = reader.getSchema().findFieldByName(name);
      KJ_IF_MAYBE (found, field) {
        if (!reader.has(*found, capnp::HasMode::NON_NULL)) return "";
        value = reader.get(*found);
      } else {
        return "";
      }
      at = end;
    }
  }
  return spelled(value);
}

namespace {
std::uint64_t visit_value(const DynamicValue::Reader& value) {
  switch (value.getType()) {
    case DynamicValue::TEXT:
      return std::string(value.as<capnp::Text>().cStr()).size();
    case DynamicValue::DATA:
      return value.as<capnp::Data>().size();
    case DynamicValue::LIST: {
      std::uint64_t bytes = 0;
      for (const auto element : value.as<DynamicList>())
        bytes += visit_value(element);
      return bytes;
    }
    case DynamicValue::STRUCT:
      return visit(value.as<DynamicStruct>());
    default:
      return 8;
  }
}
}  // namespace

std::uint64_t visit(DynamicStruct::Reader reader) {
  std::uint64_t bytes = 0;
  for (const auto field : reader.getSchema().getNonUnionFields()) {
    bytes += visit_value(reader.get(field));
  }
  KJ_IF_MAYBE (field, reader.which()) {
    bytes += visit_value(reader.get(*field));
  }
  return bytes;
}

// Each line in a reader of its own: what one may read of a frame is bounded.
TEST(DynamicFrames, LinesAreFoundAgain) {
  for (const auto& arm : envelope_arms()) {
    const FilledFrame filled = fill_arm(arm);
    EXPECT_EQ(frame_kind(filled.frame), arm);
    for (const auto& line : filled.lines) {
      auto incoming = Incoming::open(filled.frame);
      ASSERT_TRUE(incoming);
      const auto split = line.find(" = ");
      const auto found =
          incoming->read([&](schema::Envelope::Reader envelope) -> core::Result<std::string> {
            return value_at(envelope, line.substr(0, split));
          });
      ASSERT_TRUE(found) << line << ": " << found.error().message;
      EXPECT_EQ(*found, line.substr(split + 3)) << line;
    }
  }
}

}  // namespace troupe::wire::testing
