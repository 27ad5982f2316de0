// Data that was there when training began and cannot be read any more, or holds what it must not.
#pragma once

#include <stdexcept>

namespace runtime {

/// What is wrong before training begins is a diagnostic instead; see `open_data`.
class DataError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace runtime
