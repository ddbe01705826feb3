// Maps C++ values to structs of the schema: each schema field corresponds to the member of the same
// name (`versionMin` is `version_min`). The field lists are generated from the schemas
// (schema/list_messages.cpp). A member that is missing, misspelled, of another type or not in the
// schema therefore does not compile. Include it only in sources, and in few of them.
//
//   schema                  C++
//   number, Bool            the same type
//   Text                    std::string
//   Data                    std::vector of numbers; kData unless it holds whole ones. Or a type T
//                           with a Layout<capnp::Data, T>: `bytes(value)`, `read(in, value, field)`
//   enum                    enum class with the enumerators kName in the same order
//   struct                  struct or std::optional of one; with name and value also std::pair
//   List(X)                 std::vector of X
//
// If a struct has `core::Result<void> check() const`, it is called after reading.
#pragma once

#include "runtime/core/result.hpp"
#include "schema/envelope.capnp.h"

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe::wire {

template <class Schema, class Value>
struct Layout;
template <class Wire>
struct Enumerators;  // of a schema enum: `all<E>` lists the enumerators of E

// ---- writing

template <class T>
requires std::is_arithmetic_v<T> T wire_of(T value) {
  return value;
}
inline capnp::Text::Reader wire_of(const std::string& text) {
  return {text.c_str(), text.size()};
}
template <class T>
requires std::is_arithmetic_v<T> capnp::Data::Reader wire_of(const std::vector<T>& values) {
  return {reinterpret_cast<const capnp::byte*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
auto wire_of(const T& value) -> decltype(Layout<capnp::Data, T>::bytes(value)) {
  return Layout<capnp::Data, T>::bytes(value);
}

template <class Value, class Builder>
void put_struct(const Value& value, Builder out) {
  Layout<typename Builder::Builds, Value>::write(value, out);
}

template <class T, class Builder>
void put_list(const std::vector<T>& values, Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) {
    if constexpr (requires { out.set(i, wire_of(values[i])); }) {
      out.set(i, wire_of(values[i]));
    } else {
      put_struct(values[i], out[i]);
    }
  }
}

// Pointer to a struct that may be absent; null if it is.
template <class T>
const T* present(const T& value) {
  return &value;
}
template <class T>
const T* present(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

// ---- reading

template <class T>
requires std::is_arithmetic_v<T> core::Result<void> take(T in, T& out, const char*) {
  out = in;
  return {};
}
inline core::Result<void> take(capnp::Text::Reader in, std::string& out, const char*) {
  out.assign(in.begin(), in.size());
  return {};
}
template <class T>
core::Result<void> take(capnp::Data::Reader in, std::vector<T>& out, const char* field) {
  if (in.size() % sizeof(T) != 0) {
    return core::fail(core::ErrorCode::kData,
                      std::string("field ") + field + " holds a broken array");
  }
  out.resize(in.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), in.begin(), in.size());
  return {};
}
template <class T>
auto take(capnp::Data::Reader in, T& out, const char* field)
    -> decltype(Layout<capnp::Data, T>::read(in, out, field)) {
  return Layout<capnp::Data, T>::read(in, out, field);
}
template <class Wire, class E>
requires(std::is_enum_v<Wire>&& std::is_enum_v<E>) core::Result<void> take(Wire in,
                                                                           E& out,
                                                                           const char* field) {
  if (static_cast<std::size_t>(in) >= Enumerators<Wire>::template all<E>.size()) {
    return core::fail(core::ErrorCode::kData,
                      std::string("field ") + field + " holds a value of a newer program");
  }
  out = static_cast<E>(in);
  return {};
}

template <class Reader, class Value>
core::Result<void> take_struct(bool, Reader in, Value& out) {
  return Layout<typename Reader::Reads, Value>::read(in, out);
}
template <class Reader, class Value>
core::Result<void> take_struct(bool has, Reader in, std::optional<Value>& out) {
  return has ? take_struct(has, in, out.emplace()) : core::Result<void>();
}

template <class List, class T>
core::Result<void> take_list(List in, std::vector<T>& out, const char* field) {
  out.reserve(in.size());
  for (const auto item : in) {
    T& last = out.emplace_back();
    if constexpr (requires { take(item, last, field); }) {
      TROUPE_TRY(take(item, last, field));
    } else {
      TROUPE_TRY(take_struct(true, item, last));
    }
  }
  return {};
}

// ---- the fields of all structs, from the lists

#define ENUMERATION(Name, ...)                            \
  template <>                                             \
  struct Enumerators<schema::Name> {                      \
    template <class E>                                    \
    static constexpr auto all = std::array{__VA_ARGS__};  \
    template <class E>                                    \
    static constexpr bool in_order() {                    \
      for (std::size_t i = 0; i < all<E>.size(); ++i) {   \
        if (all<E>[i] != static_cast<E>(i)) return false; \
      }                                                   \
      return true;                                        \
    }                                                     \
  };
// The structured binding counts the members, so a member that the schema lacks does not compile.
#define STRUCT(Name, ...)                                            \
  template <class Value>                                             \
  void write_fields([[maybe_unused]] const Value& value_,            \
                    [[maybe_unused]] schema::Name::Builder out_) {   \
    __VA_OPT__([[maybe_unused]] const auto& [__VA_ARGS__] = value_;) \
    static_assert(sizeof(#__VA_ARGS__) > 1 || std::is_empty_v<Value>);
#define VALUE(member, Name) out_.set##Name(wire_of(value_.member));
#define ENUM(member, Name, Wire)                                                 \
  static_assert(Enumerators<schema::Wire>::in_order<decltype(value_.member)>()); \
  out_.set##Name(static_cast<schema::Wire>(value_.member));
#define GROUP(member, Name) \
  if (const auto* inner = present(value_.member)) put_struct(*inner, out_.init##Name());
#define LIST(member, Name) \
  put_list(value_.member, out_.init##Name(static_cast<unsigned>(value_.member.size())));
#define END }
#include "schema/fields.inc"
#undef ENUMERATION
#undef STRUCT
#undef VALUE
#undef ENUM
#undef GROUP
#undef LIST
#undef END

#define ENUMERATION(Name, ...)
#define STRUCT(Name, ...)                                                   \
  template <class Value>                                                    \
  core::Result<void> read_fields([[maybe_unused]] schema::Name::Reader in_, \
                                 [[maybe_unused]] Value& value_) {
#define VALUE(member, Name) TROUPE_TRY(take(in_.get##Name(), value_.member, #member));
#define ENUM(member, Name, Wire) VALUE(member, Name)
#define GROUP(member, Name) \
  TROUPE_TRY(take_struct(in_.has##Name(), in_.get##Name(), value_.member));
#define LIST(member, Name) TROUPE_TRY(take_list(in_.get##Name(), value_.member, #member));
#define END  \
  return {}; \
  }
#include "schema/fields.inc"
#undef ENUMERATION
#undef STRUCT
#undef VALUE
#undef ENUM
#undef GROUP
#undef LIST
#undef END

// The default: field by field. Specialised for values of another shape.
template <class Schema, class Value>
struct Layout {
  static void write(const Value& value, typename Schema::Builder out) { write_fields(value, out); }
  static core::Result<void> read(typename Schema::Reader in, Value& value) {
    TROUPE_TRY(read_fields(in, value));
    if constexpr (requires { value.check(); }) TROUPE_TRY(value.check());
    return {};
  }
};

template <class First, class Second>
struct Named {
  First& name;
  Second& value;
};

template <class Schema, class First, class Second>
struct Layout<Schema, std::pair<First, Second>> {
  static void write(const std::pair<First, Second>& pair, typename Schema::Builder out) {
    write_fields(Named<const First, const Second>{pair.first, pair.second}, out);
  }
  static core::Result<void> read(typename Schema::Reader in, std::pair<First, Second>& pair) {
    Named<First, Second> named{pair.first, pair.second};
    return read_fields(in, named);
  }
};

}  // namespace troupe::wire
