#include "runtime/wire/hello.hpp"

#include "runtime/core/check.hpp"
#include "runtime/wire/envelope.hpp"

namespace troupe::wire {

Frame hello_frame(const Hello& hello) {
  Header header;
  header.run = hello.run;
  header.epoch = hello.epoch;
  header.sender = hello.name;
  Outgoing outgoing(header);
  auto out = outgoing.envelope().initHello();
  out.setName(hello.name);
  out.setRunId(hello.run.value);
  out.setEpoch(hello.epoch);
  out.setPass(hello.pass);
  auto frame = outgoing.finish();
  TROUPE_CHECK(frame.has_value(), "a name and a pass fit a frame");
  return std::move(frame).value();
}

core::Result<Hello> read_hello(const Frame& frame) {
  TROUPE_TRY_ASSIGN(incoming, Incoming::open(frame));
  return incoming.read([](schema::Envelope::Reader envelope) -> core::Result<Hello> {
    if (!envelope.isHello()) return core::fail(core::ErrorCode::kData, "not a hello");
    const auto in = envelope.getHello();
    const auto name = in.getName();
    const auto pass = in.getPass();
    return Hello{std::string(name.begin(), name.size()), core::RunId{in.getRunId()}, in.getEpoch(),
                 std::string(pass.begin(), pass.size())};
  });
}

}  // namespace troupe::wire
