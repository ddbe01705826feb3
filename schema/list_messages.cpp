// A plug-in of the Cap'n Proto compiler that lists the schemas' contents as C++ macro calls:
// schema/messages.inc has the messages of an envelope, schema/fields.inc the fields of their
// structs. With these lists actors/protocol reads and writes every message by the same code.
//
//   MESSAGE(IssueTickets, 6)            an arm of the envelope and its place in the union
//   STRUCT(Ticket, update, slot, ...)   begins a struct, with the C++ names of all its fields; then
//   VALUE(update, Update)               a number, a text or data: C++ name, name in accessors
//   ENUM(state, State, GroupState)      an enumerated value
//   GROUP(ticket, Ticket)               a struct in a struct
//   LIST(groups, Groups)                a list
//   END                                 ends the struct
//   ENUMERATION(GroupState, E::kIssued, ...)
//
// messages.inc leaves out arms marked $hostOnly, which roles never see. fields.inc leaves out
// fields named obsoleteN, and structs with a union, which need a layout of their own
// (actors/protocol/codec.cpp).
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>

#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace {

namespace cs = capnp::schema;

constexpr std::uint16_t kNoArm = cs::Field::NO_DISCRIMINANT;

std::string text(capnp::Text::Reader value) {
  return {value.begin(), value.size()};
}

// "versionMin" -> "VersionMin", as the generated accessors spell it.
std::string capital(std::string name) {
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

// "versionMin" -> "version_min", as our structs spell it.
std::string snake(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c))) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string short_name(cs::Node::Reader node) {
  return text(node.getDisplayName()).substr(node.getDisplayNamePrefixLength());
}

class Lists {
 public:
  explicit Lists(capnp::List<cs::Node>::Reader nodes) {
    for (const auto node : nodes)
      nodes_.emplace(node.getId(), node);
  }

  void write() {
    std::ofstream messages("schema/messages.inc");
    messages << "// Made by schema/list_messages.cpp from schema/envelope.capnp.\n";
    fields_ << "// Made by schema/list_messages.cpp from schema/*.capnp.\n";
    for (const auto arm : named("Envelope").getStruct().getFields()) {
      if (arm.getDiscriminantValue() == kNoArm || !arm.getSlot().getType().isStruct()) continue;
      list(arm.getSlot().getType());
      if (host_only(arm)) continue;
      messages << "MESSAGE(" << capital(text(arm.getName())) << ", " << arm.getDiscriminantValue()
               << ")\n";
    }
  }

 private:
  cs::Node::Reader named(const std::string& name) const {
    for (const auto& [id, node] : nodes_) {
      if (short_name(node) == name) return node;
    }
    throw std::runtime_error("the schemas have no " + name);
  }

  bool host_only(cs::Field::Reader arm) const {
    const std::uint64_t mark = named("hostOnly").getId();
    for (const auto annotation : arm.getAnnotations()) {
      if (annotation.getId() == mark) return true;
    }
    return false;
  }

  // Lists the struct or enumeration behind a type, once, and what it needs before it.
  void list(cs::Type::Reader type) {
    if (type.isList()) return list(type.getList().getElementType());
    if (type.isEnum() && seen_.insert(type.getEnum().getTypeId()).second) {
      list_enumeration(nodes_.at(type.getEnum().getTypeId()));
    }
    if (type.isStruct() && seen_.insert(type.getStruct().getTypeId()).second) {
      list_struct(nodes_.at(type.getStruct().getTypeId()));
    }
  }

  void list_enumeration(cs::Node::Reader node) {
    fields_ << "ENUMERATION(" << short_name(node);
    for (const auto one : node.getEnum().getEnumerants())
      fields_ << ", E::k" << capital(text(one.getName()));
    fields_ << ")\n";
  }

  void list_struct(cs::Node::Reader node) {
    std::string names, lines;
    for (const auto field : node.getStruct().getFields()) {
      const std::string name = text(field.getName());
      if (name.starts_with("obsolete")) continue;
      if (field.isSlot()) list(field.getSlot().getType());
      names += ", " + snake(name);
      if (field.isSlot()) lines += line_of(field.getSlot().getType(), name);
    }
    if (node.getStruct().getDiscriminantCount() > 0) return;
    fields_ << "STRUCT(" << short_name(node) << names << ")\n" << lines << "END\n";
  }

  std::string line_of(cs::Type::Reader type, const std::string& name) const {
    const std::string both = "(" + snake(name) + ", " + capital(name);
    if (type.isEnum()) {
      return "ENUM" + both + ", " + short_name(nodes_.at(type.getEnum().getTypeId())) + ")\n";
    }
    const char* kind = type.isStruct() ? "GROUP" : type.isList() ? "LIST" : "VALUE";
    return kind + both + ")\n";
  }

  std::map<std::uint64_t, cs::Node::Reader> nodes_;
  std::set<std::uint64_t> seen_;
  std::ofstream fields_{"schema/fields.inc"};
};

}  // namespace

int main() {
  capnp::ReaderOptions trusted;
  trusted.traversalLimitInWords = 1ull << 30;
  capnp::StreamFdMessageReader request(0, trusted);
  Lists(request.getRoot<cs::CodeGeneratorRequest>().getNodes()).write();
}
