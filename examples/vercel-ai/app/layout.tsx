import type { Metadata } from "next";
import type { ReactNode } from "react";

export const metadata: Metadata = { title: "A tool that needs approval" };

export default function Layout({ children }: { readonly children: ReactNode }) {
  return (
    <html lang="en">
      <body style={{ fontFamily: "system-ui", maxWidth: "40rem", margin: "2rem auto" }}>{children}</body>
    </html>
  );
}
