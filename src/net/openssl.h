// What the .cc files of net share about OpenSSL: owners for its objects and the text of its last
// error. Heavy: never included by a public header.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sextant::net {

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using BioPtr = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using PkeyPtr = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, FreeWith<X509_free>>;
using SslPtr = std::unique_ptr<SSL, FreeWith<SSL_free>>;
using SslCtxPtr = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;

inline BioPtr ReadBio(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// All of a memory BIO.
std::string TakeBio(BIO* bio);
// The reason of the newest error on this thread's queue, which is cleared; "unknown" if none.
std::string OpenSslError();
// The first private key in `pem`, of any kind that OpenSSL can read without a password.
Result<PkeyPtr> LoadPrivateKey(std::string_view pem);

}  // namespace sextant::net
