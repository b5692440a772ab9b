// What the lab tells sextant-init to run: records "key=value", each ended by a NUL, in a memory
// file (the environment of a Pod must not reach the programs that build its sandbox: LD_PRELOAD).
// Shared by the lab (writes, isolation.cc) and sextant-init (reads). Order matters for
// argv, env, and the Landlock paths only.
//
//   argv=<word>… env=<NAME=value>… cwd=<dir>
//   uid=, gid=              ids inside the container
//   drop_uid=, drop_gid=    ids outside, to be taken on first (only where the lab is root)
//   own=<path>…             given to that user before (only with drop_uid)
//   tty=1                   standard input is a terminal: make it the controlling one
//   console=1               open a terminal of the container's own /dev/pts: it becomes the
//   standard
//                           streams and the controlling one, its master goes out at kConsoleFd
//   data=, nproc=, nofile=, fsize=    resource limits (bytes, counts)
//   hold=1                  no program: wait until killed (the body of a simulated container)
//   nonet=1                 refuse sockets other than unix ones
//   read=<path>… write=<path>…        Landlock: what may be read and run, what may be written
#pragma once

namespace sextant::kubelet {

// Descriptors that sextant-init finds open.
inline constexpr int kSpecFd = 3;    // the records
inline constexpr int kStatusFd = 4;  // a failure before exec is written here; closed by exec
inline constexpr int kSelfFd = 5;    // sextant-init itself: bwrap runs it inside the sandbox
inline constexpr int kInfoFd = 6;    // bwrap --info-fd
inline constexpr int kArgsFd = 7;    // bwrap --args
inline constexpr int kUserNsFd = 8;  // namespaces to enter
inline constexpr int kNetNsFd = 9;
inline constexpr int kIpcNsFd = 10;
inline constexpr int kUtsNsFd = 11;
inline constexpr int kMountNsFd = 12;
inline constexpr int kPidNsFd = 13;
inline constexpr int kInnerUserNsFd = 14;  // the container's own user namespace, below kUserNsFd
inline constexpr int kConsoleFd = 15;      // the master of the container's terminal is sent here
inline constexpr int kFirstFileFd = 16;    // contents of placed files
inline constexpr int kControlFd = 3;       // pause: the control socket

// In the environment of sextant-init: the lab's process id, to notice that the lab has died before
// the kernel was asked to watch it.
inline constexpr char kParentVariable[] = "SEXTANT_PARENT";

// What comes on kStatusFd: nothing (the sandbox could not be built, its builder complained on
// standard error), a text (why the program cannot run), kReady (it runs), or kReady and a text.
inline constexpr char kReady = 'R';

// pause: one request is one SocketRequest, one answer a SocketAnswer, with the socket attached if
// error is 0. The first message after the start is a SocketAnswer with the namespaces attached
// (user, net, ipc, uts; without user where the lab is root), or an error with a text behind it.
struct SocketRequest {
  int domain;
  int type;
};
struct SocketAnswer {
  int error;  // errno
};

}  // namespace sextant::kubelet
