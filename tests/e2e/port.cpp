#include "tests/e2e/port.h"

#include <cstdint>
#include <fstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace e2e {
namespace {

/// Listens on a port of every address; 0: on one that the system chooses. -1 where it is taken.
int listen_on(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      listen(descriptor, 1) == 0)
    return descriptor;
  close(descriptor);
  return -1;
}

}  // namespace

TakenPort::TakenPort() : socket_(listen_on(0)) {
  if (socket_ < 0) throw std::runtime_error("no port is free");
}

TakenPort::~TakenPort() { close(socket_); }

std::string TakenPort::port() const {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
  return std::to_string(ntohs(address.sin_port));
}

std::string free_port() {
  constexpr int first = 10000;
  constexpr int places_of_a_process = 16;
  int end = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> end;
  if (end <= first) throw std::runtime_error("the system gives every port from 10000 on to connections");
  static int tried = 0;
  for (int places = end - first; tried < places; ++tried) {
    const int port = first + (getpid() * places_of_a_process + tried) % places;
    const int descriptor = listen_on(port);
    if (descriptor < 0) continue;
    close(descriptor);
    ++tried;
    return std::to_string(port);
  }
  throw std::runtime_error("no port is free");
}

}  // namespace e2e
