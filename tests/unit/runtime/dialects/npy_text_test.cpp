// Arrays as text, against values made by hand: numpy.save's bytes.
#include "runtime/dialects/npy_text.hpp"

#include "runtime/core/base64.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::dialects {

TEST(NpyText, BytesAreThoseOfNumpySave) {
  // np.save of np.array([[[1, 511], [0, 2], [3, 65535]]], dtype=np.int32), whose axes all have
  // other lengths: 118 bytes of header after 10 of magic, version and length.
  const std::vector<std::uint16_t> values = {1, 511, 0, 2, 3, 65535};
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 3, 2), }";
  header.resize(117, ' ');
  bytes += header + '\n';
  bytes += std::string("\x01\x00\x00\x00\xff\x01\x00\x00\x00\x00\x00\x00", 12);
  bytes += std::string("\x02\x00\x00\x00\x03\x00\x00\x00\xff\xff\x00\x00", 12);
  EXPECT_EQ(npy_text(values, {1, 3, 2}), core::base64(bytes));
  EXPECT_EQ(npy_text({}, {0, 1, 2}).size(), core::base64(std::string(128, ' ')).size());
}

}  // namespace troupe::dialects
