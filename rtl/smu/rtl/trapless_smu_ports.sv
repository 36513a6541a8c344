// SPDX-License-Identifier: Apache-2.0
// Software request ports: registers through which software asks as a walker does (REQ: SMU-11).
`include "trapless_smu_ff.svh"

module trapless_smu_ports
  import trapless_smu_pkg::*;
  import trapless_spec_pkg::*;
#(
  parameter int unsigned Ports = 4
) (
  input logic clk_i,
  input logic rst_ni,

  // register access: `field` is the offset in the port, divided by 8
  input logic [4:0] index_i,
  input logic [2:0] field_i,
  input logic write_i,
  // The write covers the register's upper half.
  input logic upper_i,
  input logic [63:0] wdata_i,
  output logic [63:0] rdata_o,
  output logic refused_o,

  output logic [Ports-1:0] valid_o,
  input logic [Ports-1:0] ready_i,
  output smu_req_t [Ports-1:0] req_o,
  output logic [Ports-1:0] misaligned_o,
  output logic [Ports-1:0] far_o,
  input logic [Ports-1:0] answer_i,
  input reason_t [Ports-1:0] reason_i,
  input logic [63:0] value_i
);

  function automatic logic [2:0] field(int unsigned offset);
    return 3'(offset >> 3);
  endfunction

  logic [Ports-1:0][63:0] pte_q, pmd_q, pud_q, entry_q, answer_q;
  logic [Ports-1:0] busy_q, ask_q;
  smu_outcome_e [Ports-1:0] outcome_q;
  reason_t [Ports-1:0] reason_q;
  logic known;

  assign known = 32'(index_i) < Ports;

  always_comb begin
    rdata_o = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (index_i == 5'(p)) begin
        unique case (field_i)
          field(PORT_PTE_ADDR): rdata_o = pte_q[p];
          field(PORT_PMD_ADDR): rdata_o = pmd_q[p];
          field(PORT_PUD_ADDR): rdata_o = pud_q[p];
          field(PORT_ENTRY): rdata_o = entry_q[p];
          field(PORT_STATUS): begin
            rdata_o[PORT_STATUS_BUSY_BIT] = busy_q[p];
            rdata_o[PORT_STATUS_OUTCOME_MSB:PORT_STATUS_OUTCOME_LSB] = outcome_q[p];
            if (outcome_q[p] == OutcomeFailed) rdata_o[PORT_STATUS_REASON_MSB:PORT_STATUS_REASON_LSB] = 8'(reason_q[p]);
          end
          field(PORT_ANSWER): rdata_o = outcome_q[p] == OutcomeNone ? '0 : answer_q[p];
          default: rdata_o = '0;
        endcase
      end
    end
  end

  always_comb begin
    refused_o = 1'b0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (write_i && known && index_i == 5'(p)) refused_o = busy_q[p];
      req_o[p] = '{
        pte_addr: pte_q[p][PAddrWidth-1:0],
        pmd_addr: pmd_q[p][PAddrWidth-1:0],
        pud_addr: pud_q[p][PAddrWidth-1:0],
        pte: entry_q[p],
        id: '0
      };
    end
  end

  assign valid_o = ask_q;

  `TRAPLESS_FF begin
    if (!rst_ni) begin
      busy_q <= '0;
      ask_q <= '0;
      outcome_q <= {Ports{OutcomeNone}};
      pte_q <= '0;
      pmd_q <= '0;
      pud_q <= '0;
      entry_q <= '0;
    end else begin
      for (int unsigned p = 0; p < Ports; p++) begin
        if (ready_i[p]) ask_q[p] <= 1'b0;
        if (answer_i[p]) begin
          busy_q[p] <= 1'b0;
          outcome_q[p] <= outcome_of(reason_i[p]);
        end
        if (write_i && index_i == 5'(p) && !busy_q[p]) begin
          unique case (field_i)
            field(PORT_PTE_ADDR): pte_q[p] <= wdata_i;
            field(PORT_PMD_ADDR): pmd_q[p] <= wdata_i;
            field(PORT_PUD_ADDR): pud_q[p] <= wdata_i;
            field(PORT_ENTRY): begin
              entry_q[p] <= wdata_i;
              if (upper_i) begin
                busy_q[p] <= 1'b1;
                ask_q[p] <= 1'b1;
                outcome_q[p] <= OutcomeNone;
              end
            end
            default: ;
          endcase
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < Ports; p++) begin
      // A request with an address that no entry can have is refused at once. The addresses are written long before the request.
      misaligned_o[p] <= pte_q[p][2:0] != '0 || pmd_q[p][2:0] != '0 || pud_q[p][2:0] != '0;
      far_o[p] <= pte_q[p][63:PAddrWidth] != '0 || pmd_q[p][63:PAddrWidth] != '0 || pud_q[p][63:PAddrWidth] != '0;
      if (answer_i[p]) begin
        reason_q[p] <= reason_i[p];
        answer_q[p] <= outcome_of(reason_i[p]) == OutcomeFailed ? '0 : value_i;
      end
    end
  end

endmodule
