#include "runtime/wire/hello.hpp"

#include "runtime/wire/bodies.hpp"

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
  out.setArithmetic(hello.arithmetic);
  return finished(outgoing);
}

core::Result<Hello> read_hello(const Frame& frame) {
  return read_frame<Hello>(frame, [](EnvelopeReader envelope) -> core::Result<Hello> {
    if (!envelope.isHello()) return core::fail(core::ErrorCode::kData, "not a hello");
    const auto in = envelope.getHello();
    return Hello{string_of(in.getName()), core::RunId{in.getRunId()}, in.getEpoch(),
                 string_of(in.getPass()), string_of(in.getArithmetic())};
  });
}

}  // namespace troupe::wire
