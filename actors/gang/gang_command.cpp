#include "actors/gang/gang_command.hpp"

#include "actors/protocol/frames.hpp"
#include "actors/protocol/messages_critic.hpp"

#include <cstring>

namespace troupe::actors::gang {
namespace {

class Writer {
 public:
  void number(std::uint64_t value) { raw(&value, sizeof value); }
  void block(const void* at, std::size_t bytes) {
    number(bytes);
    raw(at, bytes);
  }
  template <class Message>
  core::Result<void> message(const Message& message) {
    TROUPE_TRY_ASSIGN(frame, to_frame(wire::Header{}, message));
    block(frame.bytes().data(), frame.size_bytes());
    return {};
  }
  core::Result<void> values(const learn::TokenValues& values) {
    number(values.size());
    for (const auto& group : values) {
      CriticValues one;
      one.groups.push_back({group});
      TROUPE_TRY(message(one));
    }
    return {};
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void raw(const void* at, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(at);
    bytes_.insert(bytes_.end(), first, first + bytes);
  }
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  core::Result<std::uint64_t> number() {
    std::uint64_t value = 0;
    if (bytes_.size() < sizeof value) return broken();
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  core::Result<std::span<const std::byte>> block() {
    TROUPE_TRY_ASSIGN(size, number());
    if (size > bytes_.size()) return broken();
    const auto block = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return block;
  }
  core::Result<std::string> text() {
    TROUPE_TRY_ASSIGN(bytes, block());
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <class Message>
  core::Result<Message> message() {
    TROUPE_TRY_ASSIGN(bytes, block());
    TROUPE_TRY_ASSIGN(frame, wire::Frame::copy_of(bytes));
    return from_frame<Message>(std::move(frame));
  }
  // Reads the length of a list whose items are messages of their own.
  core::Result<std::uint64_t> count() {
    TROUPE_TRY_ASSIGN(count, number());
    if (count > bytes_.size()) return broken();
    return count;
  }
  core::Result<learn::TokenValues> values() {
    TROUPE_TRY_ASSIGN(size, count());
    learn::TokenValues values;
    for (std::uint64_t i = 0; i < size; ++i) {
      TROUPE_TRY_ASSIGN(one, message<CriticValues>());
      if (one.groups.size() != 1) return broken();
      values.push_back(std::move(one.groups.front().samples));
    }
    return values;
  }
  bool at_end() const { return bytes_.empty(); }
  static core::Failure broken() {
    return core::fail(ErrorCode::kData, "the command of a gang is truncated");
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

const char* word_of(GangCall call) {
  constexpr const char* kWords[kGangCalls] = {"prepare", "train", "publish", "value", "train",
                                              "save",    "load",  "save",    "train", "evaluate"};
  return kWords[static_cast<std::size_t>(call)];
}

core::Result<std::vector<std::byte>> to_bytes(const GangCommand& command) {
  Writer out;
  out.number(static_cast<std::uint64_t>(command.call));
  out.block(command.folder.data(), command.folder.size());
  out.block(command.other_folder.data(), command.other_folder.size());
  out.number(command.groups.size());
  for (const experience::Group& group : command.groups) {
    ExperiencePage page;
    page.groups.push_back(group);
    TROUPE_TRY(out.message(page));
  }
  TROUPE_TRY(out.values(command.old));
  TROUPE_TRY(out.values(command.returns));
  out.number(command.rows.size());
  for (const TrainingRow& row : command.rows) {
    RowsPage page;
    page.rows.push_back(row);
    TROUPE_TRY(out.message(page));
  }
  return out.take();
}

core::Result<GangCommand> command_of(std::span<const std::byte> bytes) {
  Reader in(bytes);
  GangCommand command;
  TROUPE_TRY_ASSIGN(call, in.number());
  if (call >= kGangCalls) return Reader::broken();
  command.call = static_cast<GangCall>(call);
  TROUPE_TRY_SET(command.folder, in.text());
  TROUPE_TRY_SET(command.other_folder, in.text());
  TROUPE_TRY_ASSIGN(groups, in.count());
  for (std::uint64_t i = 0; i < groups; ++i) {
    TROUPE_TRY_ASSIGN(page, in.message<ExperiencePage>());
    if (page.groups.size() != 1) return Reader::broken();
    command.groups.push_back(std::move(page.groups.front()));
  }
  TROUPE_TRY_SET(command.old, in.values());
  TROUPE_TRY_SET(command.returns, in.values());
  TROUPE_TRY_ASSIGN(rows, in.count());
  for (std::uint64_t i = 0; i < rows; ++i) {
    TROUPE_TRY_ASSIGN(page, in.message<RowsPage>());
    if (page.rows.size() != 1) return Reader::broken();
    command.rows.push_back(std::move(page.rows.front()));
  }
  if (!in.at_end()) return Reader::broken();
  return command;
}

}  // namespace troupe::actors::gang
