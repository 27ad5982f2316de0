// Ports of this machine: one that is taken, and one that is free.
#pragma once

#include <string>

namespace e2e {

/// A port that is taken while this lives.
class TakenPort {
 public:
  TakenPort();
  ~TakenPort();
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  std::string port() const;

 private:
  int socket_;
};

/// A port on which nobody listens, and which the system gives to no connection: it lies below those. Test
/// programs that run side by side begin to look at places of their own.
std::string free_port();

}  // namespace e2e
